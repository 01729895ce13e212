"""What an operation is, and its parameters: the shape of the rows, and what several share."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from gateway.contract.access import Permission
from gateway.contract.fields import INSTANT, INTEGER, TEXT, UUID, Field, Format, Resource

PAGE_DEFAULT = 50
PAGE_LARGEST = 200

Where = Literal["path", "query"]


class Match(StrEnum):
    """How a filter compares a field with the caller's value."""

    EQUALS = "equals"
    SINCE = "since"
    SEARCH = "search"


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of the path or the query.

    With `match` and `fields` it is a filter on these fields of the answer's resource. `within`
    names the resource in which the id must exist before anything is listed. `to_come` marks a time
    that the clinic's booking window bounds.
    """

    name: str
    summary: str
    format: Format = TEXT
    where: Where = "query"
    required: bool = False
    values: tuple[str, ...] = ()
    match: Match | None = None
    fields: tuple[str, ...] = ()
    within: str | None = None
    shortest: int | None = None
    longest: int | None = None
    least: int | None = None
    most: int | None = None
    to_come: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call that a partner can make.

    `many` answers a JSON array; `paged` arrays take `limit` and `cursor`. `only` are fixed
    conditions as (field, value). `errors` are the statuses beyond those that every operation has.
    `notes` is what a caller must know that no other member says.
    """

    id: str
    summary: str
    method: Literal["GET", "POST"]
    path: str
    permission: Permission
    returns: Resource
    many: bool = False
    paged: bool = False
    params: tuple[Param, ...] = ()
    only: tuple[tuple[str, bool], ...] = ()
    body: tuple[Field, ...] = ()
    status: int = 200
    errors: tuple[int, ...] = ()
    notes: str = ""

    # true where the call writes into the practice system
    creates: bool = field(init=False)

    def __post_init__(self) -> None:
        if self.permission not in frozenset(Permission):
            raise ValueError(f"{self.id} has no permission: anybody with a key could call it")
        object.__setattr__(self, "creates", self.method == "POST")

    @property
    def query(self) -> tuple[Param, ...]:
        """The parameters of the query, those of paging included."""
        own = tuple(param for param in self.params if param.where == "query")
        return (*own, LIMIT, CURSOR) if self.paged else own


LIMIT = Param(
    name="limit",
    summary=f"Records a page, {PAGE_DEFAULT} where it is absent; fewer where they are over 1 MiB.",
    format=INTEGER,
    least=1,
    most=PAGE_LARGEST,
)
CURSOR = Param(
    name="cursor",
    summary='Where the next page starts: taken from the `Link` header with `rel="next"`.',
    longest=2_800,
    shortest=1,
)


def id_in_path(name: str, summary: str) -> Param:
    return Param(name=name, summary=summary, format=UUID, where="path", required=True)


def search_in(*fields: str) -> Param:
    return Param(
        name="search",
        summary=(
            f"Words that {' and '.join(fields)} must hold: each the beginning of a word,"
            " whatever the case and, where the practice system can, the accents."
        ),
        match=Match.SEARCH,
        fields=fields,
        shortest=2,
        longest=100,
    )


UPDATED_SINCE = Param(
    name="updatedSince",
    summary="Only records changed at this moment or later.",
    format=INSTANT,
    match=Match.SINCE,
    fields=("updatedAt",),
)
CATEGORY = Param(
    name="category",
    summary="Only items of this category.",
    match=Match.EQUALS,
    fields=("category",),
    shortest=1,
    longest=100,
)
