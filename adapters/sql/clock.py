"""The time on the clinic's clock as a parameter of SQL: `:now` and `:today` of a mapping.

It is the wall clock of the clinic's zone, without a zone and with whole seconds. Where the database
has a type for times, it is a value of that type (a timestamp, a date), elsewhere a text.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import UserDefinedType

from adapters.mapping.expressions import NOW, TODAY
from adapters.values.times import PATTERN, written

_PATTERNS = {NOW: PATTERN, TODAY: "%Y-%m-%d"}
# What a database calls their types, where it is not TIMESTAMP and DATE.
_TYPES: Mapping[str, Mapping[str, str]] = {
    "mysql": {NOW: "DATETIME"},
    "mariadb": {NOW: "DATETIME"},
    "mssql": {NOW: "DATETIME2(0)"},
}
_DEFAULTS = {NOW: "TIMESTAMP", TODAY: "DATE"}


def shown(name: str, zone: str, at: datetime | None = None) -> str:
    """Returns what the clinic's clock shows, at a moment or now."""
    return written((at or datetime.now(UTC)).astimezone(ZoneInfo(zone)), _PATTERNS[name])


def moment(name: str, zone: str, at: datetime | None = None) -> sa.BindParameter[Any]:
    """Returns the parameter; without a moment its value is that of each execution."""
    value = partial(shown, name, zone, at)
    return sa.bindparam(name, callable_=value, type_=_Moment(name))


class _Moment(UserDefinedType[str]):
    """The type of such a parameter, by its name."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def bind_expression(self, bindvalue: sa.BindParameter[str]) -> "_Typed":
        return _Typed(bindvalue, self.name)


class _Typed(sa.ColumnElement[str]):
    """A parameter that is a text, as a time or a day of the database."""

    inherit_cache = False

    def __init__(self, value: sa.BindParameter[str], name: str) -> None:
        self.value, self.name = value, name


def _cast(typed: _Typed, compiler: Any, *, types: Mapping[str, str], **kept: Any) -> str:
    return f"CAST({compiler.process(typed.value, **kept)} AS {types[typed.name]})"


compiles(_Typed)(partial(_cast, types=_DEFAULTS))
for _name, _own in _TYPES.items():
    compiles(_Typed, _name)(partial(_cast, types=_DEFAULTS | dict(_own)))


@compiles(_Typed, "sqlite")
def _as_text(typed: _Typed, compiler: Any, **kept: Any) -> str:
    return str(compiler.process(typed.value, **kept))
