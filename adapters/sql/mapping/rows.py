"""The models of what a mapping says of rows: columns, keys, lists, resources."""

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from adapters.ids import HASHED, NATIVE, SEALED
from adapters.mapping.conversion import Conversion, Strict


def _listed(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError("must be a text: put it in quotes")  # noqa: TRY004 - pydantic takes this
    if not isinstance(value, str | list | tuple):
        raise ValueError("must be a text, or a list of texts")  # noqa: TRY004 - the same
    return (value,) if isinstance(value, str) else tuple(value)


def _long_form(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError("must be a text: put it in quotes")  # noqa: TRY004 - pydantic takes this
    if value is None:
        raise ValueError("is empty: write a column or another SQL expression, or leave it out")
    return {"sql": value} if isinstance(value, str | list) else value


# An SQL expression, or several: one value in several columns.
Sql = Annotated[str, Field(min_length=1)]
_SQL_SCHEMA: dict[str, Any] = {"type": "string", "minLength": 1}
_COLUMNS_SCHEMA: dict[str, Any] = {
    "anyOf": [_SQL_SCHEMA, {"type": "array", "items": _SQL_SCHEMA, "minItems": 1}]
}
Columns = Annotated[
    tuple[Sql, ...],
    BeforeValidator(_listed),
    Field(min_length=1, max_length=8),
    WithJsonSchema(_COLUMNS_SCHEMA),
]


class InColumns(Strict):
    """What stands in one column or in several: a text by itself is the expression, a list them."""

    sql: Columns

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return _long_form(value)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(schema))
        long["properties"]["sql"] = _COLUMNS_SCHEMA
        return {"anyOf": [*_COLUMNS_SCHEMA["anyOf"], long]}


class Expression(InColumns, Conversion):
    """A value of a row: an SQL expression, or several columns, and how it is written."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All that is selected for the value, in the order in which its converter takes it."""
        return self.sql if self.plus is None else (*self.sql, self.plus)


class Key(InColumns):
    """What names a row: one column, or several together; `as` is what public ids are made of."""

    as_: Literal["id", "native id", "hashed id"] | None = Field(default=None, alias="as")

    @model_validator(mode="after")
    def _of_one_column(self) -> "Key":
        if len(self.sql) > 1 and self.as_ in (SEALED, NATIVE):
            raise ValueError(f"a key of several columns is no {self.as_}; leave `as` out")
        return self

    @property
    def kind(self) -> str:
        """What its ids are: `id` (sealed), `native id` or `hashed id`."""
        return self.as_ or (SEALED if len(self.sql) == 1 else HASHED)


class Rows(Strict):
    """Rows of one table, or of any joined expression."""

    from_: str = Field(alias="from", min_length=1, examples=["patients p"])
    where: Sql | None = None


class ListOf(Rows):
    """A list inside each record, fetched once a page: `parent` holds the record's key."""

    parent: Columns = Field(examples=["l.invoice_id"])
    key: Key
    fields: dict[str, Expression]


class ResourceMap(Rows):
    """One resource: a `key` that is unique, and its fields."""

    key: Key = Field(examples=["p.id"])
    fields: dict[str, Expression] = Field(examples=["{name: p.name}"])
    lists: dict[str, ListOf] = Field(default_factory=dict)
