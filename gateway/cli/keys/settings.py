"""What the clinic decides of a key, as options: their values, and what was named of them."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from gateway.cli.levels import LEVEL, Scope
from gateway.cli.lines import Line
from gateway.cli.options import CommandT
from gateway.cli.words import OneOf
from gateway.contract.access import Permission
from gateway.contract.fields import read_instant
from gateway.keys.key import DEFAULT_LIMIT, MOST_NETWORKS, read_network

# A text that begins with a day.
_day = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})").match
PERMISSION = OneOf("PERMISSION", Permission, Permission)


def _each_once(_: click.Context, __: click.Parameter, scopes: Any) -> Any:
    """The scopes; wrong use where two are about one resource."""
    named = [resource for resource, _ in scopes]
    if doubled := sorted({each for each in named if named.count(each) > 1}):
        raise click.BadParameter(f"{', '.join(doubled)} is named twice; give it one level")
    return scopes


class Moment(click.ParamType[Any]):
    """A date-time with its offset, that is still to come."""

    name = "DATE-TIME"

    def __init__(self, *, new: bool) -> None:
        self._remedy = "" if new else "; to end a key, revoke it"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in ("", "never"):
            return value
        if (wrong := _no_such_day(str(value))) is not None:
            self.fail(wrong, param, ctx)
        try:
            moment = read_instant(value)
        except ValueError:
            self.fail("write it with its offset, such as 2027-01-31T00:00:00Z", param, ctx)
        if moment <= datetime.now(UTC):
            self.fail(f"that time is past{self._remedy}", param, ctx)
        return moment


def _no_such_day(text: str) -> str | None:
    """What is wrong with the day in a text that begins like a date; None where it exists."""
    found = _day(text)
    if found is None:
        return None
    year, month, day = map(int, found.groups())
    if not 1 <= month <= 12:
        return f"there is no month {found[2]}"
    if year and not 1 <= day <= monthrange(year, month)[1]:
        return f"there is no day {found[3]} in {found[1]}-{found[2]}"
    return None


class NetworkOfCallers(click.ParamType[Any]):
    """A network or an address, as a key keeps it."""

    name = "NETWORK"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            return read_network(str(value))
        except ValueError as error:
            return self.fail(str(error), param, ctx)


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
        click.option("--contact", type=Line(), help="Whom to call about this key."),
        click.option(
            "--expires",
            type=Moment(new=new),
            help=f"When it ends, such as 2027-01-31T00:00:00Z{never}.",
        ),
        click.option(
            "--limit", type=click.IntRange(1, 1_000_000_000), help=f"Requests an hour{limit}."
        ),
        click.option(
            "--bookings-per-day",
            type=click.IntRange(1, 1_000_000_000),
            help=f"Bookings a day, by the clinic's calendar{unbounded}.",
        ),
        click.option(
            "--network",
            "networks",
            type=NetworkOfCallers(),
            multiple=True,
            callback=_not_too_many,
            help=networks,
        ),
        click.option(
            "--scope",
            "scopes",
            type=Scope(),
            multiple=True,
            callback=_each_once,
            help=f"{scopes}, each named once; repeatable.",
        ),
        click.option("--level", type=LEVEL, required=new, help="BASIC, STANDARD or FULL."),
        click.option(
            "--permission",
            "permissions",
            type=PERMISSION,
            multiple=True,
            required=new,
            help=f"{what}; repeatable: {', '.join(Permission)}.",
        ),
        click.option(
            "--name", type=Line(), required=new, help="Who gets it." if new else "Who has it."
        ),
    )

    def with_options(command: CommandT) -> CommandT:
        for option in options:
            command = option(command)
        return command

    return with_options


# What gives a key something, by the flag that takes all of it away.
_TAKEN_AWAY = {
    "--no-scopes": ("--scope", "scopes"),
    "--no-networks": ("--network", "networks"),
    "--no-bookings-per-day": ("--bookings-per-day", "bookings_per_day"),
}


def check_contradictions(options: dict[str, Any]) -> None:
    """Wrong use where something is both given and taken away."""
    for flag, (giving, given) in _TAKEN_AWAY.items():
        if options[flag.strip("-").replace("-", "_")] and options[given]:
            raise click.UsageError(f"{flag} and {giving} contradict each other: name one of them")


def changes_of(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were named, by the fields of a key."""
    check_contradictions(options)
    changes = {
        name: options[name] for name in ("level", "limit", "contact") if options[name] is not None
    }
    if options["name"] is not None:
        changes["name"] = name_of(options["name"])
    if options["permissions"]:
        changes["permissions"] = frozenset(options["permissions"])
    if options["expires"] is not None:
        changes["expires_at"] = expiry(options["expires"])
    if options["scopes"] or options["no_scopes"]:
        changes["scopes"] = dict(options["scopes"])
    if options["bookings_per_day"] is not None or options["no_bookings_per_day"]:
        changes["bookings_per_day"] = options["bookings_per_day"]
    if options["networks"] or options["no_networks"]:
        changes["networks"] = options["networks"]
    return changes


def name_of(text: str) -> str:
    if not text.strip() or len(text) > 200:
        raise click.BadParameter("write 1 to 200 characters", param_hint="--name")
    return text.strip()


def expiry(value: Any) -> datetime | None:
    return None if value in (None, "", "never") else value
