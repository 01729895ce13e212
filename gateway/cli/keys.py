"""`clinic-gateway keys`: make, show, change, rotate and revoke the partners' keys."""

import asyncio
import re
import sys
from calendar import monthrange
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.command import CommandGroup, CommandT, Run, now, option, scopes_option, typed
from gateway.cli.output import fail, legible, plain, say, say_json
from gateway.cli.values import FLAG, LEVEL, ONE_LINE, TextValue, one_of
from gateway.contract.access import Permission
from gateway.contract.fields import read_instant
from gateway.inquiries.keys import changes_told, settings_told
from gateway.keys.key import DEFAULT_LIMIT, MOST_NETWORKS, Key, read_network

if TYPE_CHECKING:  # slow to import: only commands that open a store do so
    from gateway.keys.store import KeyAndSecrets, KeyStore
    from gateway.store import Store

SHOWN_ONCE = "This is the only time that the secret is shown. Hand it over in a safe way."
# Widths of columns in a terminal.
ID_WIDTH, STATE_WIDTH, DAY_WIDTH = 36, len("until 2027-01-31"), len("2027-01-31")
NO_KEYS = "no keys are known here: name the gateway's configuration with --config"
key_argument = click.argument("named", metavar="KEY")
# Matches a text that begins with a day.
_day = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})").match
_overlap = re.compile(r"([0-9]{1,4})([smhd])").fullmatch
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER = click.IntRange(1, 1_000_000_000)
# Field of a key -> its value after `--no-...` has removed it.
_NOTHING: dict[str, Any] = {"scopes": {}, "networks": (), "bookings_per_day": None}


@click.group(cls=CommandGroup)
def keys() -> None:
    """Make, show, change, rotate and revoke the partners' keys."""


def _read_overlap(text: str) -> tuple[str, timedelta]:
    """Returns a duration such as 24h, as it is written and as a value; raises ValueError."""
    match = _overlap(text)
    if match is None:
        raise ValueError("write a number and s, m, h or d, such as 24h")
    overlap = timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    if overlap > timedelta(days=90):
        raise ValueError("an overlap is at most 90 days")
    return text, overlap


def _read_end(remedy: str, text: str) -> datetime | str:
    """Returns a future date-time with an offset; `never` and "" as they are. Raises ValueError."""
    if text in ("", "never"):
        return text
    if match := _day(text):
        year, month, day = map(int, match.groups())
        if not 1 <= month <= 12:
            raise ValueError(f"there is no month {match[2]}")
        if not 1 <= day <= monthrange(year or 1, month)[1]:
            raise ValueError(f"there is no day {match[3]} in {match[1]}-{match[2]}")
    try:
        moment = read_instant(text)
    except ValueError:
        raise ValueError("write it with its offset, such as 2027-01-31T00:00:00Z") from None
    if moment <= now():
        raise ValueError(f"that time is past{remedy}")
    return moment


def _read_name(text: str) -> str:
    if not text.strip() or len(text) > 200:
        raise ValueError("write 1 to 200 characters")
    return str(ONE_LINE.read(text)).strip()


_NAME = TextValue("TEXT", _read_name)


def _settings_of_a_key(command: CommandT, *, new: bool) -> CommandT:
    """Adds the options that `create` and `update` share, with the help texts of one of them."""

    def words(of_create: str, of_update: str) -> str:
        return of_create if new else of_update

    default = words("; {} where it is not given.", ".").format
    read_end = partial(_read_end, words("", "; to end a key, revoke it"))
    for add in (
        option("--contact", ONE_LINE, "Whom to call about this key."),
        option(
            "--expires expires_at",
            TextValue("DATE-TIME", read_end),
            f"When it ends, such as 2027-01-31T00:00:00Z{words('', '; `never` takes it away')}.",
        ),
        option("--limit", _NUMBER, f"Requests an hour{default(DEFAULT_LIMIT)}"),
        option(
            "--bookings-per-day",
            _NUMBER,
            f"Bookings a day, by the clinic's calendar{default('any number')}",
        ),
        option(
            "--network networks",
            TextValue("NETWORK", read_network),
            words(
                "A network that it may be used from, such as 192.0.2.0/24; repeatable; any where"
                " none is given.",
                "All networks that it may be used from, from now on; repeatable.",
            ),
            multiple=True,
        ),
        scopes_option(
            words("Level of a resource", "All its levels of resources from now on")
            + ", each named once; repeatable."
        ),
        option("--level", LEVEL, "BASIC, STANDARD or FULL.", required=new),
        option(
            "--permission permissions",
            one_of("PERMISSION", Permission, Permission),
            f"{words('What it may call', 'All that it may call from now on')}; repeatable:"
            f" {', '.join(Permission)}.",
            multiple=True,
            required=new,
        ),
        option("--name", _NAME, words("Who gets it.", "Who has it."), required=new),
    ):
        command = add(command)
    return command


def _settings_named(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the given settings by the fields of a key; raises UsageError for contradictions."""
    # a repeatable option that was not given is empty
    named = {field: value for field, value in options.items() if value not in (None, False, (), {})}
    if "permissions" in named:
        named["permissions"] = frozenset(named["permissions"])
    if "networks" in named:
        named["networks"] = tuple(dict.fromkeys(named["networks"]))
    if len(named.get("networks", ())) > MOST_NETWORKS:
        raise click.BadParameter(f"name at most {MOST_NETWORKS} networks", param_hint="'--network'")
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


@keys.command()
@partial(_settings_of_a_key, new=True)
async def create(run: Run, **options: Any) -> None:
    """Make a key, and show its secret this once."""
    at = now()
    key = Key(**_settings_named(options), created_at=at)
    async with _opened(run, may_begin=True) as (store, kept):
        # read before the key is made, so that a failure loses no secret
        latest = await kept.key_time(at)
        async with run.deed(store, "key made", key.id, **settings_told(key)):
            secret = await kept.add(key)
    _print_key(run, key, latest, secret=secret)
    _tell_unoffered(run, key)


@keys.command("list")
async def list_keys(run: Run) -> None:
    """All keys."""
    async with _opened(run) as (_, kept):
        listing, at = await kept.list(), await kept.key_time(now())
    for key_id in listing.odd:
        say(_odd(key_id), err=True)
    if run.as_json:
        say_json([_key_data(key, hints) for key, hints in listing.keys])
    elif listing.keys:
        _print_keys([_row(key, hints, at) for key, hints in listing.keys])
    else:
        from gateway.cli.description import store_shown

        say(f"no keys yet in {store_shown(run.settings)}; `clinic-gateway keys create` makes one")


@keys.command()
@key_argument
async def show(run: Run, named: str) -> None:
    """One key.

    KEY is its id, or its name where no other key has that.
    """
    async with _opened(run) as (_, kept):
        (key, hints), at = await key_named(kept, named), await kept.key_time(now())
    _print_key(run, key, at, hints=hints)


@keys.command("update")
@key_argument
@partial(_settings_of_a_key, new=False)
@option("--no-scopes", FLAG, "Take all scopes away.")
@option("--no-bookings-per-day", FLAG, "Let it book any number a day.")
@option("--no-networks", FLAG, "Let it be used from anywhere.")
async def update_key(run: Run, named: str, **options: Any) -> None:
    """Change a key; what is not named stays.

    KEY is its id, or its name where no other key has that.
    """
    changes = _settings_named(options)
    if not changes:
        raise click.UsageError("nothing to change: name at least one setting")
    async with _opened(run) as (store, kept):
        # read before the change, so that a failure changes nothing
        (before, _), at = await key_named(kept, named), await kept.key_time(now())
        details = {"name": before.name, **changes_told(before, replace(before, **changes))}
        async with run.deed(store, "key changed", before.id, **details):
            await kept.update(before.id, **changes)
        key, hints = await kept.show(before.id)
    _print_key(run, key, at, hints=hints)
    if "permissions" in changes:
        _tell_unoffered(run, key)


@keys.command()
@key_argument
@option(
    "--overlap",
    TextValue("DURATION", _read_overlap),
    "How long the secret before it stays valid: a number and s, m, h or d, at most 90d.",
    default="24h",
)
async def rotate(run: Run, named: str, overlap: tuple[str, timedelta]) -> None:
    """Give a key a new secret, and show it this once.

    KEY is its id, or its name where no other key has that.
    """
    at = now()
    async with _opened(run) as (store, kept):
        # read before the rotation, so that a failure loses no secret
        (key, _), latest = await key_named(kept, named), await kept.key_time(at)
        async with run.deed(store, "key rotated", key.id, name=key.name, overlap=overlap[0]):
            secret, (key, hints) = await kept.rotate(key.id, overlap[1], at)
    _print_key(run, key, latest, secret=secret, hints=hints)


@keys.command()
@key_argument
@option("--yes", FLAG, "Do not ask. Without a terminal it is required.")
def revoke(run: Run, named: str, yes: bool) -> None:
    """Take a key away, for good.

    KEY is its id, or its name where no other key has that. On a terminal the command asks first.
    """
    if not (yes or sys.stdin.isatty()):
        raise click.UsageError(
            "without a terminal this needs --yes: a revoked key never works again"
        )

    async def read(revoked: Key | None = None) -> "KeyAndSecrets":
        async with _opened(run) as (store, kept):
            if revoked is not None:
                async with run.deed(store, "key revoked", revoked.id, name=revoked.name):
                    await kept.revoke(revoked.id, now())
            return await key_named(kept, revoked.id if revoked else named)

    key, hints = asyncio.run(read())
    if key.revoked_at is not None:
        _print_key(run, key, now(), hints=hints)
        say(f"this key was revoked already, at {plain(key.revoked_at)}", err=True)
        return
    if not yes:
        contact = f" ({key.contact})" if key.contact else ""
        used = f"last used {plain(key.last_used_at)}" if key.last_used_at else "never used"
        question = f"Revoke {key.name}{contact}, {key.id}, {used}? It never works again."
        # outside of an event loop, which would delay an interrupt
        if not click.confirm(legible(question), err=True):
            fail("nothing was revoked")
    # this machine's time is enough here: the state of a revoked key does not depend on it
    key, hints = asyncio.run(read(revoked=key))
    _print_key(run, key, now(), hints=hints)
    if not run.as_json:
        say("", f"{key.name} is revoked: within a second every call with it is refused, for good")


@keys.command()
def verify(run: Run) -> None:
    """Say of a secret on stdin whether it is well formed, or mistyped.

    Nothing is asked of any store: whether a key has the secret, a call to the gateway tells.
    """
    from gateway.keys.secret import well_formed

    sound = well_formed(typed("Secret").strip())
    line = ["well formed: it can be a secret of a gateway"] if sound else []
    run.say({"wellFormed": sound}, line)
    if not sound:
        fail("mistyped or cut off: no gateway has made this secret")


@asynccontextmanager
async def _opened(
    run: Run, *, may_begin: bool = False
) -> AsyncIterator[tuple["Store", "KeyStore"]]:
    """Yields the configured store and its keys; their refusals end the command."""
    from gateway.keys.store import KeyStore, OddKey, RevokedKey, UnknownKey

    try:
        async with run.store(may_begin=may_begin) as store:
            yield store, KeyStore(store)
    except UnknownKey as error:
        fail(f"no key has the id {error}; `clinic-gateway keys list` shows them")
    except OddKey as error:
        fail(_odd(str(error)))
    except RevokedKey:
        fail("this key was revoked, for good; `clinic-gateway keys create` makes a new one")


def _odd(key_id: str) -> str:
    return (
        f"what is kept of the key {key_id} makes no sense here; it counts as revoked:"
        " make a new one, or run the version of the gateway that wrote it"
    )


async def key_named(kept: "KeyStore", name: str) -> "KeyAndSecrets":
    """Returns the key with that id, or the only one with that name; else ends the command."""
    listing = await kept.list()
    if name in listing.odd:
        fail(_odd(name))
    matches = [held for held in listing.keys if held[0].id == name]
    matches = matches or [held for held in listing.keys if held[0].name == name]
    if not matches:
        fail(f"no key has the id or the name {name}; `clinic-gateway keys list` shows them")
    if len(matches) > 1:
        ids = ", ".join(key.id for key, _ in matches)
        fail(f"{len(matches)} keys have the name {name}; name one by its id: {ids}")
    return matches[0]


def _key_data(key: Key, hints: Sequence[Any]) -> dict[str, Any]:
    """Returns a key as JSON members: everything but its secret."""
    secrets = [{"hint": hint.hint, "expiresAt": hint.expires_at} for hint in hints]
    data = {"id": key.id, "name": key.name, "contact": key.contact, **settings_told(key)}
    data |= {"createdAt": key.created_at, "lastUsedAt": key.last_used_at}
    return data | {"revokedAt": key.revoked_at} | ({"secrets": secrets} if secrets else {})


def _print_key(
    run: Run, key: Key, at: datetime, *, secret: str = "", hints: Sequence[Any] = ()
) -> None:
    """Prints a key with its state at that time, and its new secret where there is one."""
    data = _key_data(key, hints)
    texts = {
        name: plain(value, ", ") for name, value in data.items() if value not in (None, {}, [])
    }
    if hints:
        texts["secrets"] = ", ".join(
            f"{hint.hint}..." + (f" until {plain(hint.expires_at)}" if hint.expires_at else "")
            for hint in hints
        )
    texts["state"], width = _state(key, at), max(map(len, data))
    lines = [f"{name:{width}}  {text}" for name, text in texts.items()]
    if secret:
        data = {"id": key.id, "key": secret} | data
        lines += ["", secret, "", SHOWN_ONCE]
    run.say(data, lines)


def _tell_unoffered(run: Run, key: Key) -> None:
    """Tells on stderr which permissions are in vain; no mapping, or a broken one, tells nothing."""
    from adapters.documents.document import read_document
    from adapters.documents.problems import DocumentErrors
    from gateway.contract.operations import offered

    backend = run.settings.backend
    if backend.mapping is None or backend.adapter not in ("sql", "rest"):
        return
    try:
        data = read_document(backend.mapping).data
    except DocumentErrors:
        return
    mapped = data.get("resources") if isinstance(data, dict) else None
    if not isinstance(mapped, dict):
        return
    have = {*mapped, *(("slots",) if "diary" in data else ())}
    useful = {operation.permission for operation in offered(have, books="booking" in data)}
    for permission in sorted(key.permissions - useful):
        text = f"{permission}: {backend.mapping} has nothing that it opens, so its calls are 404"
        say(text, err=True)


def _state(key: Key, at: datetime) -> str:
    if key.revoked_at:
        return "revoked"
    if not key.active(at):
        return "expired"
    return f"until {plain(key.expires_at)}" if key.expires_at else "active"


def _row(key: Key, hints: Sequence[Any], at: datetime) -> dict[str, str]:
    return {
        "id": key.id,
        "name": " ".join(legible(key.name).split()),
        "hint": hints[-1].hint if hints else "",
        "level": " ".join([key.level, *(f"{name}={level}" for name, level in key.scopes.items())]),
        "permissions": " ".join(sorted(key.permissions)),
        "limit": str(key.limit),
        "state": _state(key, at),
        "last used": plain(key.last_used_at or "never"),
        "bookings per day": str(key.bookings_per_day or ""),
        "networks": " ".join(key.networks),
    }


def _print_keys(rows: Sequence[dict[str, str]]) -> None:
    """Prints one line for each key, on a terminal two, and a third one for its bounds."""
    if not sys.stdout.isatty():
        for cells in (rows[0], *(row.values() for row in rows)):
            click.echo("\t".join(cells))
        return
    from rich.cells import cell_len
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    wide = max(Console().width, 80)
    longest = max(cell_len(row["name"]) for row in rows)
    first = max(ID_WIDTH, min(longest, ID_WIDTH + (wide - 80) // 2))
    room = wide - first - STATE_WIDTH - DAY_WIDTH - 4  # a blank behind each column
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("name\nid", width=first, no_wrap=True, overflow="ellipsis")
    table.add_column("level\nhint", no_wrap=True)
    table.add_column("limit\nstate", width=STATE_WIDTH, no_wrap=True)
    table.add_column("last used\n", width=DAY_WIDTH, no_wrap=True)
    for row in rows:
        level, *scopes = row["level"].split()
        # where scopes have no room, only their number is shown
        shown = row["level"] if len(row["level"]) <= room else f"{level} +{len(scopes)}"
        bookings, networks = row["bookings per day"], row["networks"].split()
        bounds = [f"{bookings} bookings/day"] if bookings else []
        bounds += networks[:1] if len(networks) < 2 else [f"{networks[0]} +{len(networks) - 1}"]
        bound = f"\n{', '.join(bounds)}" if bounds else ""
        table.add_row(
            escape(f"{row['name']}\n{row['id']}{bound}"),
            f"{shown}\n{row['hint']}",
            f"{row['limit']}\n{row['state'][:STATE_WIDTH]}",
            row["last used"][:DAY_WIDTH],
        )
    Console(width=wide).print(table)
