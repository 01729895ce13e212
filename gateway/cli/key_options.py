"""The options of the commands on keys: their values, and the settings of a key that they name."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from gateway.cli.options import LEVEL, CommandT, OneLine, OneOf, Scope, TextValue
from gateway.contract.access import Permission
from gateway.contract.fields import read_instant
from gateway.keys.key import DEFAULT_LIMIT, MOST_NETWORKS, read_network

# A text that begins with a day.
_day = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})").match
_overlap = re.compile(r"([0-9]{1,4})([smhd])").fullmatch
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_NUMBER = click.IntRange(1, 1_000_000_000)
# What takes a setting away, by its field: the flag, the option that gives it, and what is left.
_TAKEN_AWAY: dict[str, tuple[str, str, Any]] = {
    "scopes": ("--no-scopes", "--scope", {}),
    "networks": ("--no-networks", "--network", ()),
    "bookings_per_day": ("--no-bookings-per-day", "--bookings-per-day", None),
}


def read_overlap(text: str) -> timedelta:
    """A duration such as 24h; ValueError for any other text."""
    found = _overlap(text)
    if found is None:
        raise ValueError("write a number and s, m, h or d, such as 24h")
    overlap = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if overlap > timedelta(days=90):
        raise ValueError("an overlap is at most 90 days")
    return overlap


def write_overlap(overlap: timedelta) -> str:
    """The duration in the largest unit that it is whole in."""
    for letter, unit in reversed(_UNITS.items()):
        if overlap % timedelta(**{unit: 1}) == timedelta():
            return f"{overlap // timedelta(**{unit: 1})}{letter}"
    raise ValueError(overlap)


def _moment(*, new: bool) -> click.ParamType[Any]:
    """A date-time with its offset that is still to come; `never` and "" as they are."""

    def read(text: str) -> datetime | str:
        if text in ("", "never"):
            return text
        _check_day(text)
        try:
            moment = read_instant(text)
        except ValueError:
            raise ValueError("write it with its offset, such as 2027-01-31T00:00:00Z") from None
        if moment <= datetime.now(UTC):
            raise ValueError(f"that time is past{'' if new else '; to end a key, revoke it'}")
        return moment

    return TextValue("DATE-TIME", read)


def _check_day(text: str) -> None:
    """ValueError where a text begins with a day that does not exist."""
    found = _day(text)
    if found is None:
        return
    year, month, day = map(int, found.groups())
    if not 1 <= month <= 12:
        raise ValueError(f"there is no month {found[2]}")
    if year and not 1 <= day <= monthrange(year, month)[1]:
        raise ValueError(f"there is no day {found[3]} in {found[1]}-{found[2]}")


def _named(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None and (not name.strip() or len(name) > 200):
        raise click.BadParameter("write 1 to 200 characters")
    return name and name.strip()


def _each_once(_: click.Context, __: click.Parameter, scopes: Any) -> dict[str, Any]:
    """The level by resource; wrong use where two are about one resource."""
    named = [resource for resource, _ in scopes]
    if doubled := sorted({each for each in named if named.count(each) > 1}):
        raise click.BadParameter(f"{', '.join(doubled)} is named twice; give it one level")
    return dict(scopes)


def _not_too_many(_: click.Context, __: click.Parameter, networks: tuple[str, ...]) -> Any:
    """The networks, each once; wrong use for more than a key takes."""
    found = tuple(dict.fromkeys(networks))
    if len(found) > MOST_NETWORKS:
        raise click.BadParameter(f"name at most {MOST_NETWORKS} networks")
    return found


def settings_of_a_key(*, new: bool) -> Callable[[CommandT], CommandT]:
    """The options that `create` and `update` share, in the words of one of them."""
    what = "What it may call" if new else "All that it may call from now on"
    limit = f"; {DEFAULT_LIMIT} where it is not given" if new else ""
    unbounded = "; any number where it is not given" if new else ""
    networks = (
        "A network that it may be used from, such as 192.0.2.0/24; repeatable; any where none is"
        " given."
        if new
        else "All networks that it may be used from, from now on; repeatable."
    )
    scopes = "Level of a resource" if new else "All its levels of resources from now on"
    never = "" if new else "; `never` takes it away"
    options = (
        click.option("--contact", type=OneLine(), help="Whom to call about this key."),
        click.option(
            "--expires", "expires_at", type=_moment(new=new),
            help=f"When it ends, such as 2027-01-31T00:00:00Z{never}.",
        ),
        click.option("--limit", type=_NUMBER, help=f"Requests an hour{limit}."),
        click.option(
            "--bookings-per-day", type=_NUMBER,
            help=f"Bookings a day, by the clinic's calendar{unbounded}.",
        ),
        click.option(
            "--network", "networks", type=TextValue("NETWORK", read_network), multiple=True,
            callback=_not_too_many, help=networks,
        ),
        click.option(
            "--scope", "scopes", type=Scope(), multiple=True, callback=_each_once,
            help=f"{scopes}, each named once; repeatable.",
        ),
        click.option("--level", type=LEVEL, required=new, help="BASIC, STANDARD or FULL."),
        click.option(
            "--permission", "permissions", type=OneOf("PERMISSION", Permission, Permission),
            multiple=True, required=new, help=f"{what}; repeatable: {', '.join(Permission)}.",
        ),
        click.option(
            "--name", type=OneLine(), callback=_named, required=new,
            help="Who gets it." if new else "Who has it.",
        ),
    )  # fmt: skip

    def with_options(command: CommandT) -> CommandT:
        for option in options:
            command = option(command)
        return command

    return with_options


def settings_named(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that the options name, by the fields of a key; wrong use of contradictions."""
    named = {
        field: options[field]
        for field in ("name", "contact", "level", "limit", "bookings_per_day", "expires_at")
        if options[field] is not None
    }
    named |= {field: options[field] for field in ("scopes", "networks") if options[field]}
    if options["permissions"]:
        named["permissions"] = frozenset(options["permissions"])
    if named.get("expires_at") in ("", "never"):
        named["expires_at"] = None
    for field, (flag, giving, nothing) in _TAKEN_AWAY.items():
        if options.get(f"no_{field}"):
            if field in named:
                text = f"{flag} and {giving} contradict each other: name one of them"
                raise click.UsageError(text)
            named[field] = nothing
    return named
