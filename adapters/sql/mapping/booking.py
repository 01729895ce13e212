"""The models of what a mapping says of a booking: the steps that write its rows."""

import re
from collections.abc import Mapping as Members
from typing import Any, Literal

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema

from adapters.mapping.conversion import Conversion, Listed, Scalar, Strict
from adapters.sql.mapping.rows import Sql

# The names in a write's `sql`, each with a colon before it.
NAMED = re.compile(r"(?<![:\w\\]):(\w+)(?!:)").findall


class Value(Conversion):
    """What a booking writes into a column: one of these, or a plain constant."""

    draft: str | None = None
    made: str | None = None
    sql: str | None = None
    constant: Scalar = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"constant": value}

    @model_validator(mode="after")
    def _one_source(self) -> "Value":
        named = [name for name in ("draft", "made", "sql") if getattr(self, name) is not None]
        if len(named) > 1:
            raise ValueError(f"takes one of draft, made, sql, not {' and '.join(named)}")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [{"type": ["string", "number", "boolean", "null"]}, long]}


# What makes a step of each kind: what it needs, and what it may have beside `name` and `for`.
_KINDS: Members[str, tuple[frozenset[str], frozenset[str]]] = {
    "insert": (frozenset({"values"}), frozenset({"key"})),
    "update": (frozenset({"values", "where"}), frozenset()),
    "counter": (frozenset({"column", "name"}), frozenset({"where"})),
    "sequence": (frozenset({"name"}), frozenset()),
}


class Write(Strict):
    """One step of a booking: a row inserted or updated, a counter moved on, a sequence's number.

    `name` is what later steps call its key, or its number. `for` keeps it to bookings of a slot
    row, or to those of any other time, `if` to those that have the named value of the draft.
    """

    insert: str | None = None
    update: str | None = None
    counter: str | None = None
    sequence: str | None = None
    for_: Literal["slot", "time"] | None = Field(default=None, alias="for")
    if_: str | None = Field(default=None, alias="if")
    key: Listed[str] | str | None = None
    column: str | None = None
    where: Sql | None = None
    name: str | None = None
    values: dict[str, Value] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_kind(self) -> "Write":
        kinds = [name for name in _KINDS if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(f"takes one of {', '.join(_KINDS)}")
        needs, may = _KINDS[kinds[0]]
        given = {n for n in ("key", "column", "where", "name", "values") if getattr(self, n)}
        if missing := needs - given:
            article = "an" if kinds[0][0] in "iu" else "a"
            raise ValueError(f"{article} {kinds[0]} needs {' and '.join(sorted(missing))}")
        if strange := given - needs - may - {"name"}:
            raise ValueError(f"{' and '.join(sorted(strange))} does not go with {kinds[0]}")
        return self

    @property
    def table(self) -> str:
        """The table that it writes; "" for a sequence."""
        return self.insert or self.update or self.counter or ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of an insert that name its row."""
        if self.key is None:
            return ()
        return (self.key,) if isinstance(self.key, str) else self.key

    @property
    def names_a_row(self) -> bool:
        """Whether its name is that of a row: what an appointment can be."""
        return bool(self.insert and self.key) or bool(self.update and self.for_ == "slot")


class Booking(Strict):
    """The rows that a booking writes, in order; `appointment` names the step whose key it is.

    `reference`, of the appointments' rows, is where the draft's reference was written. The tables
    in `without_transactions` may be written though what is written there cannot be undone.
    """

    appointment: str = Field(examples=["visit"])
    reference: Sql | None = None
    writes: Listed[Write] = Field(min_length=1)
    without_transactions: Listed[str] = ()
