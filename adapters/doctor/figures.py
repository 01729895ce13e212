"""Reads a file of figures that a practice knows from its own screens."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from adapters.base import Shapes
from adapters.documents.document import Document, Place, read_document
from adapters.documents.models import check
from adapters.documents.problems import DocumentErrors, Problem, hint
from adapters.mapping.conversion import Strict
from adapters.values.convert import Unreadable, decimal

EXAMPLE = Path(__file__).with_name("figures.yaml")
# Part of a file -> the resource whose records it counts.
RESOURCES = {
    "clients": "clients",
    "patients": "patients",
    "consultations": "consultations",
    "invoices": "invoices",
    "stock": "stock",
    "vets": "vets",
    "types": "appointmentTypes",
}
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])").fullmatch


def _day(value: Any) -> Any:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError("must be a day such as 2026-12-01") from error


def _clock(value: Any) -> Any:
    text = value.strip() if isinstance(value, str) else value
    if not isinstance(text, str) or _CLOCK(text) is None:
        raise ValueError("must be a time of day such as 09:30")
    return text.rjust(5, "0")


def _entry(value: Any) -> Any:
    """Returns an entry of a diary with its time in front, in five characters."""
    if not isinstance(value, str):
        raise ValueError("must be a time and a name, such as 09:00 Rex")  # noqa: TRY004
    time, _, name = value.strip().partition(" ")
    if _CLOCK(time) is None:
        raise ValueError("must begin with a time, such as 09:00 Rex")
    return f"{time.rjust(5, '0')} {name.strip()}".strip()


def _amount(value: Any) -> Any:
    try:
        amount = decimal(value)
    except Unreadable as error:
        raise ValueError("must be an amount such as 123.40") from error
    if amount is None:
        raise ValueError("must be an amount such as 123.40")
    return amount.quantize(Decimal("0.01"))


Count = Annotated[int, Field(ge=0)]
Counts = dict[str, Count]
Day = Annotated[date, BeforeValidator(_day)]
Clock = Annotated[str, BeforeValidator(_clock)]
Entry = Annotated[str, BeforeValidator(_entry)]
Amount = Annotated[Decimal, BeforeValidator(_amount)]
Name = Annotated[str, Field(min_length=1)]


class Part(Strict):
    """Figures of one kind of record; a plain number is the `total`, a plain list the `names`."""

    by: ClassVar[tuple[str, ...]] = ()
    total: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return {"total": value}
        return (
            {"names": value} if isinstance(value, list) and "names" in cls.model_fields else value
        )


class PatientFigures(Part):
    """Figures of animals, by what tells them apart."""

    by: ClassVar[tuple[str, ...]] = ("species", "status", "sex")
    species: Counts = Field(default_factory=dict)
    status: Counts = Field(default_factory=dict)
    sex: Counts = Field(default_factory=dict)


class ConsultationFigures(Part):
    """Figures of consultations."""

    by: ClassVar[tuple[str, ...]] = ("status",)
    status: Counts = Field(default_factory=dict)


class NamedFigures(Part):
    """Figures of what has names that can all be listed."""

    names: list[Name] | None = None


class StockFigures(Part):
    """Figures of the inventory; `low_names` are some of what is low."""

    by: ClassVar[tuple[str, ...]] = ("category",)
    category: Counts = Field(default_factory=dict)
    low: Count | None = None
    low_names: list[Name] = Field(default_factory=list)


class InvoiceFigure(Strict):
    """One invoice, by its number."""

    number: Name = Field(examples=["F2026-0815"])
    total: Amount | None = None
    balance: Amount | None = None
    status: str | None = None

    def faults(self) -> Iterator[str]:
        if self.total is None and self.balance is None and self.status is None:
            yield "says nothing of it: write its total, balance or status"


class InvoiceFigures(Part):
    """Figures of invoices."""

    by: ClassVar[tuple[str, ...]] = ("status",)
    status: Counts = Field(default_factory=dict)
    list_: list[InvoiceFigure] = Field(default_factory=list, alias="list")


class DayFigure(Strict):
    """How many appointments there are on a day, of all vets or of one."""

    day: Day = Field(examples=["2026-12-01"])
    vet: Name | None = None
    total: Count = Field(examples=["23"])


class DiaryFigure(Strict):
    """The diary of one vet on one day: all appointments, all free times, or both."""

    vet: Name = Field(examples=["Dr Lind"])
    day: Day = Field(examples=["2026-12-01"])
    appointments: list[Entry] | None = None
    free: list[Clock] | None = None
    type: Name | None = None

    def faults(self) -> Iterator[str]:
        if self.appointments is None and self.free is None:
            yield "says nothing of that day: write appointments or free (an empty list is [])"
        elif self.type is not None and self.free is None:
            yield "type goes with free"


class FigureFile(Strict):
    """All that a file of figures may say."""

    clients: Part | None = None
    patients: PatientFigures | None = None
    consultations: ConsultationFigures | None = None
    invoices: InvoiceFigures | None = None
    stock: StockFigures | None = None
    vets: NamedFigures | None = None
    types: NamedFigures | None = None
    appointments: list[DayFigure] = Field(default_factory=list)
    diary: list[DiaryFigure] = Field(default_factory=list)

    @property
    def parts(self) -> dict[str, Part]:
        """The parts that count records, by their names in the file."""
        return {name: part for name in RESOURCES if (part := getattr(self, name)) is not None}


def read_figures(path: Path, shapes: Shapes) -> tuple[FigureFile, Document]:
    """Returns the file; raises DocumentErrors with all that is wrong with it.

    `shapes` say which values a status, say, may have.
    """
    document = read_document(path)
    if not isinstance(document.data, dict):
        text = "must be a group of names and values, such as `clients: 1204`"
        raise DocumentErrors([document.problem((), text, "wrong-kind")])
    problems = list(_unknown_values(document, shapes))
    try:
        made = check(document, FigureFile)
    except DocumentErrors as error:
        raise DocumentErrors([*problems, *error.problems]) from error
    if problems:
        raise DocumentErrors(problems)
    return made, document


def _unknown_values(document: Document, shapes: Shapes) -> Iterator[Problem]:
    """Yields a problem for each value that a field with a closed list of values cannot have."""
    for place in document.keys_like(("*", "*", "*")):
        name, field, value = place
        shape = shapes.get(RESOURCES.get(str(name), ""), {}).get(str(field))
        if shape is not None and isinstance(value, str):
            yield from _unknown(document, place, value, shape.values, at_key=True)
    for place in document.keys_like(("invoices", "list", "*", "status")):
        value = document.data["invoices"]["list"][place[2]]["status"]
        if isinstance(value, str):
            yield from _unknown(document, place, value, shapes["invoices"]["status"].values)


def _unknown(
    document: Document, place: Place, value: str, known: Sequence[str], *, at_key: bool = False
) -> Iterator[Problem]:
    if known and value not in known:
        text = (
            f"{value} is no value of {place[-1] if not at_key else place[-2]}{hint(value, known)}"
        )
        yield document.problem(place, text, "wrong-value", at_key=at_key)
