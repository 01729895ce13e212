"""The options of the commands on keys: their values, and the settings of a key that they name."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import click

from gateway.cli.options import LEVEL, ONE_LINE, CommandT, TextValue, one_of, scopes_option
from gateway.contract.access import Permission
from gateway.contract.fields import read_instant
from gateway.keys.key import DEFAULT_LIMIT, MOST_NETWORKS, read_network

# A text that begins with a day.
_day = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})").match
_overlap = re.compile(r"([0-9]{1,4})([smhd])").fullmatch
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER = click.IntRange(1, 1_000_000_000)
# What is left of a setting that its flag takes away, by its field.
_NOTHING: dict[str, Any] = {"scopes": {}, "networks": (), "bookings_per_day": None}


def read_overlap(text: str) -> timedelta:
    """A duration such as 24h; ValueError for any other text."""
    found = _overlap(text)
    if found is None:
        raise ValueError("write a number and s, m, h or d, such as 24h")
    overlap = timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
    if overlap > timedelta(days=90):
        raise ValueError("an overlap is at most 90 days")
    return overlap


def write_overlap(overlap: timedelta) -> str:
    """The duration in the largest unit that it is whole in."""
    seconds = int(overlap.total_seconds())
    return next(f"{seconds // unit}{word}" for word, unit in _SECONDS.items() if not seconds % unit)


def _read_end(remedy: str, text: str) -> datetime | str:
    """A date-time with its offset that is still to come; `never` and "" as they are."""
    if text in ("", "never"):
        return text
    if found := _day(text):
        year, month, day = map(int, found.groups())
        if not 1 <= month <= 12:
            raise ValueError(f"there is no month {found[2]}")
        if not 1 <= day <= monthrange(year or 1, month)[1]:
            raise ValueError(f"there is no day {found[3]} in {found[1]}-{found[2]}")
    try:
        moment = read_instant(text)
    except ValueError:
        raise ValueError("write it with its offset, such as 2027-01-31T00:00:00Z") from None
    if moment <= datetime.now(UTC):
        raise ValueError(f"that time is past{remedy}")
    return moment


def _read_name(text: str) -> str:
    if not text.strip() or len(text) > 200:
        raise ValueError("write 1 to 200 characters")
    return str(ONE_LINE.read(text)).strip()


def _few_networks(_: click.Context, __: click.Parameter, networks: tuple[str, ...]) -> Any:
    """The networks, each once; wrong use for more than a key takes."""
    found = tuple(dict.fromkeys(networks))
    if len(found) > MOST_NETWORKS:
        raise click.BadParameter(f"name at most {MOST_NETWORKS} networks")
    return found


def settings_of_a_key(*, new: bool) -> Callable[[CommandT], CommandT]:
    """The options that `create` and `update` share, in the words of one of them."""

    def words(of_create: str, of_update: str) -> str:
        return of_create if new else of_update

    option = click.option
    read_end = partial(_read_end, words("", "; to end a key, revoke it"))
    options = (
        option("--contact", type=ONE_LINE, help="Whom to call about this key."),
        option(
            "--expires", "expires_at", type=TextValue("DATE-TIME", read_end),
            help="When it ends, such as 2027-01-31T00:00:00Z"
            f"{words('', '; `never` takes it away')}.",
        ),
        option(
            "--limit", type=_NUMBER,
            help=f"Requests an hour{words(f'; {DEFAULT_LIMIT} where it is not given', '')}.",
        ),
        option(
            "--bookings-per-day", type=_NUMBER,
            help="Bookings a day, by the clinic's calendar"
            f"{words('; any number where it is not given', '')}.",
        ),
        option(
            "--network", "networks", type=TextValue("NETWORK", read_network), multiple=True,
            callback=_few_networks,
            help=words(
                "A network that it may be used from, such as 192.0.2.0/24; repeatable; any where"
                " none is given.",
                "All networks that it may be used from, from now on; repeatable.",
            ),
        ),
        scopes_option(
            words("Level of a resource", "All its levels of resources from now on")
            + ", each named once; repeatable."
        ),
        option("--level", type=LEVEL, required=new, help="BASIC, STANDARD or FULL."),
        option(
            "--permission", "permissions", type=one_of("PERMISSION", Permission, Permission),
            multiple=True, required=new,
            help=f"{words('What it may call', 'All that it may call from now on')}; repeatable:"
            f" {', '.join(Permission)}.",
        ),
        option(
            "--name", type=TextValue("TEXT", _read_name), required=new,
            help=words("Who gets it.", "Who has it."),
        ),
    )  # fmt: skip

    def with_options(command: CommandT) -> CommandT:
        for add in options:
            command = add(command)
        return command

    return with_options


def settings_named(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that the options name, by the fields of a key; wrong use of contradictions."""
    # an option that is repeated and was not given is empty
    named = {field: value for field, value in options.items() if value not in (None, False, (), {})}
    if "permissions" in named:
        named["permissions"] = frozenset(named["permissions"])
    if named.get("expires_at") in ("", "never"):
        named["expires_at"] = None
    for field, nothing in _NOTHING.items():
        if not named.pop(f"no_{field}", False):
            continue
        if field in named:
            option = field.replace("_", "-")
            text = f"--no-{option} and --{option.removesuffix('s')} contradict each other"
            raise click.UsageError(f"{text}: name one of them")
        named[field] = nothing
    return named
