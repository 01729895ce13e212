"""How a resource is read, in a mapping: one record, the list of them, and their fields."""

from pydantic import Field, model_validator

from adapters.mapping.conversion import Conversion, Listed, Strict
from adapters.rest.mapping.calls import Expr, Form, Found, One, OrText, Paged


class FilterBy(OrText, Conversion):
    """The parameter by which the backend filters."""

    query: str = Field(min_length=1)
    form: Form | None = None
    fields: Listed[str] | None = Field(default=None, min_length=1)


class ListCall(Paged):
    """Reads the records of a resource."""

    filters: dict[str, FilterBy] = Field(default_factory=dict)
    sift: Listed[str] = ()
    details: bool = False
    key: Found | None = None


class ListOf(Strict):
    """A list inside each record."""

    items: Expr = Field(examples=["lines"])
    key: Found | None = None
    fields: dict[str, Found]


class ResourceMap(Strict):
    """One resource."""

    one: One | None = None
    list_: ListCall | None = Field(default=None, alias="list")
    where: Expr | None = None
    key: Found = Field(examples=["id"])
    fields: dict[str, Found] = Field(examples=["{name: name}"])
    lists: dict[str, ListOf] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _readable(self) -> "ResourceMap":
        if self.one is None and self.list_ is None:
            raise ValueError("takes one, list, or both: there must be a way to read it")
        return self
