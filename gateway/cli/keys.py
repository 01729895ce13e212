"""`clinic-gateway keys`: make, show, change, rotate and revoke the partners' keys."""

import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.cli.lines import Line, legible, legible_json
from gateway.cli.options import CommandT, config_option, fail, json_option
from gateway.cli.words import Group, OneOf, one_at_a_time
from gateway.contract.access import AccessLevel, Permission
from gateway.contract.fields import read_instant, write_instant
from gateway.contract.resources import GOVERNED
from gateway.keys.key import DEFAULT_LIMIT

T = TypeVar("T")
SHOWN_ONCE = "This is the only time that the secret is shown. Hand it over in a safe way."
LONGEST_LINE = 1024
COLUMNS = ("id", "name", "hint", "level", "permissions", "limit", "state", "last used")
# In a terminal.
ID_WIDTH, STATE_WIDTH, DAY_WIDTH = 36, len("until 2027-01-31"), len("2027-01-31")
_overlap = re.compile(r"([0-9]{1,4})([smhd])").fullmatch
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


PERMISSION = OneOf("PERMISSION", Permission, Permission)
LEVEL = OneOf("LEVEL", AccessLevel, AccessLevel)
RESOURCE = OneOf("RESOURCE", [each.name for each in GOVERNED])


class Scope(click.ParamType[Any]):
    """`resource=LEVEL`."""

    name = "RESOURCE=LEVEL"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, AccessLevel]:
        one_at_a_time(self, value, param, ctx)
        resource, _, level = str(value).partition("=")
        if not resource or not level:
            self.fail(f"{value} must be RESOURCE=LEVEL, such as patients=STANDARD", param, ctx)
        return RESOURCE.convert(resource, param, ctx), LEVEL.convert(level, param, ctx)


def _each_once(_: click.Context, __: click.Parameter, scopes: Any) -> Any:
    """The scopes; wrong use where two are about one resource."""
    named = [resource for resource, _ in scopes]
    if doubled := sorted({each for each in named if named.count(each) > 1}):
        raise click.BadParameter(f"{', '.join(doubled)} is named twice; give it one level")
    return scopes


class Moment(click.ParamType[Any]):
    """A date-time with its offset, that is still to come."""

    name = "DATE-TIME"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in ("", "never"):
            return value
        try:
            moment = read_instant(value)
        except ValueError:
            self.fail("write it with its offset, such as 2027-01-31T00:00:00Z", param, ctx)
        if moment <= datetime.now(UTC):
            self.fail("that time is past; to end a key, revoke it", param, ctx)
        return moment


class Overlap(click.ParamType[Any]):
    """A duration such as 24h."""

    name = "DURATION"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        found = _overlap(str(value))
        if found is None:
            return self.fail("write a number and s, m, h or d, such as 24h", param, ctx)
        overlap = timedelta(**{_UNITS[found[2]]: int(found[1])})
        if overlap > timedelta(days=90):
            return self.fail("an overlap is at most 90 days", param, ctx)
        return overlap


def settings_of_a_key(*, new: bool) -> Callable[[CommandT], CommandT]:
    """The options that `create` and `update` share, in the words of one of them."""
    what = "What it may call" if new else "All that it may call from now on"
    limit = f"; {DEFAULT_LIMIT} where it is not given" if new else ""
    never = "" if new else "; `never` takes it away"
    options = (
        click.option("--contact", type=Line(), help="Whom to call about this key."),
        click.option(
            "--expires", type=Moment(), help=f"When it ends, such as 2027-01-31T00:00:00Z{never}."
        ),
        click.option(
            "--limit", type=click.IntRange(1, 1_000_000_000), help=f"Requests an hour{limit}."
        ),
        click.option(
            "--scope",
            "scopes",
            type=Scope(),
            multiple=True,
            callback=_each_once,
            help="Level of a resource, each named once; repeatable.",
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


@click.group(cls=Group)
@config_option
def keys(config: Path | None) -> None:
    """Make, show, change, rotate and revoke the partners' keys."""


@keys.command()
@settings_of_a_key(new=True)
@config_option
@json_option
def create(config: Path | None, as_json: bool, name: str, **options: Any) -> None:
    """Make a key, and show its secret this once."""
    from gateway.keys.store import new_key

    key = new_key(
        name=_name(name),
        permissions=options["permissions"],
        level=options["level"],
        scopes=dict(options["scopes"]),
        limit=options["limit"],
        expires_at=_expiry(options["expires"]),
        contact=options["contact"],
        now=datetime.now(UTC),
    )
    secret = _with_store(config, lambda store: store.add(key))
    _tell(key, as_json, secret=secret)


@keys.command("list")
@config_option
@json_option
def list_keys(config: Path | None, as_json: bool) -> None:
    """All keys."""
    listing = _with_store(config, lambda store: store.list())
    for key_id in listing.odd:
        click.echo(_odd(key_id), err=True)
    if as_json:
        click.echo(legible_json([told(key, hints) for key, hints in listing.keys]))
    elif listing.keys:
        _table(listing.keys)
    else:
        click.echo(f"no keys yet in {_place(config)}; `clinic-gateway keys create` makes one")


@keys.command()
@click.argument("key_id", metavar="ID")
@config_option
@json_option
def show(config: Path | None, as_json: bool, key_id: str) -> None:
    """One key."""
    key, hints = _with_store(config, lambda store: store.show(key_id))
    _tell(key, as_json, hints=hints)


@keys.command("update")
@click.argument("key_id", metavar="ID")
@settings_of_a_key(new=False)
@click.option("--no-scopes", is_flag=True, help="Take all scopes away.")
@config_option
@json_option
def update_key(config: Path | None, as_json: bool, key_id: str, **options: Any) -> None:
    """Change a key; what is not named stays."""
    changes = _changes(options)
    if not changes:
        raise click.UsageError("nothing to change: name at least one setting")
    _tell(_with_store(config, lambda store: store.update(key_id, **changes)), as_json)


@keys.command()
@click.argument("key_id", metavar="ID")
@click.option(
    "--overlap", type=Overlap(), default="24h", show_default=True,
    help="How long the secret before it stays valid: a number and s, m, h or d, at most 90d.",
)  # fmt: skip
@config_option
@json_option
def rotate(config: Path | None, as_json: bool, key_id: str, overlap: timedelta) -> None:
    """Give a key a new secret, and show it this once."""
    now = datetime.now(UTC)
    rotated = _with_store(config, lambda store: store.rotate(key_id, overlap, now))
    _tell(rotated.key, as_json, secret=rotated.secret, hints=rotated.secrets)


@keys.command()
@click.argument("key_id", metavar="ID")
@config_option
@json_option
def revoke(config: Path | None, as_json: bool, key_id: str) -> None:
    """Take a key away, for good."""
    key = _with_store(config, lambda store: store.revoke(key_id, datetime.now(UTC)))
    _tell(key, as_json)


@keys.command()
@config_option
@json_option
def verify(config: Path | None, as_json: bool) -> None:
    """Say of a secret on stdin whether it is well formed, or mistyped.

    Nothing is asked of any store: whether a key has the secret, a call to the gateway tells.
    """
    from gateway.keys.secret import well_formed

    sound = well_formed(_secret_from_stdin())
    if as_json:
        click.echo(legible_json({"wellFormed": sound}))
    elif sound:
        click.echo("well formed: it can be a secret of a gateway")
    if not sound:
        fail("mistyped or cut off: no gateway has made this secret")


def _secret_from_stdin() -> str:
    """The first line on stdin; where a person types, it is not shown."""
    if sys.stdin.isatty():
        return str(click.prompt("Secret", hide_input=True, err=True)).strip()
    line = sys.stdin.buffer.readline(LONGEST_LINE)
    return line.decode("utf-8", "replace").strip()


def told(key: Any, hints: Sequence[Any] = ()) -> dict[str, Any]:
    """A key as JSON members: everything but its secret."""
    return {
        "id": key.id,
        "name": key.name,
        "contact": key.contact,
        "permissions": sorted(key.permissions),
        "level": key.level,
        "scopes": dict(key.scopes),
        "limit": key.limit,
        "expiresAt": _when(key.expires_at),
        "createdAt": _when(key.created_at),
        "lastUsedAt": _when(key.last_used_at),
        "revokedAt": _when(key.revoked_at),
    } | ({"secrets": [_hint(each) for each in hints]} if hints else {})


def _hint(secret: Any) -> dict[str, Any]:
    return {"hint": secret.hint, "expiresAt": _when(secret.expires_at)}


def _tell(key: Any, as_json: bool, *, secret: str = "", hints: Sequence[Any] = ()) -> None:
    data = told(key, hints)
    if as_json:
        shown = {"id": key.id, "key": secret} | data if secret else data
        click.echo(legible_json(shown))
        return
    width = max(map(len, data))
    for name, value in data.items():
        if value not in (None, {}):
            click.echo(f"{name:{width}}  {legible(_plain(value))}")
    click.echo(f"{'state':{width}}  {_state(key, datetime.now(UTC))}")
    if secret:
        click.echo(f"\n{secret}\n\n{SHOWN_ONCE}")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={level}" for name, level in value.items())
    if isinstance(value, list):
        return ", ".join(_secret(each) if isinstance(each, dict) else str(each) for each in value)
    return str(value)


def _secret(told_of: dict[str, Any]) -> str:
    """A secret by its hint, and when it ends."""
    until = told_of["expiresAt"]
    return f"{told_of['hint']}... until {until}" if until else f"{told_of['hint']}..."


def _table(found: Sequence[Any]) -> None:
    """One line a key for other programs, two for people."""
    rows = [dict(zip(COLUMNS, _row(key, hints), strict=True)) for key, hints in found]
    if sys.stdout.isatty():
        _draw(rows)
        return
    for row in (COLUMNS, *(each.values() for each in rows)):
        click.echo("\t".join(row))


def _draw(rows: Sequence[dict[str, str]]) -> None:
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
        table.add_row(
            escape(f"{row['name']}\n{row['id']}"),
            f"{_shortened(row['level'], room)}\n{row['hint']}",
            f"{row['limit']}\n{row['state'][:STATE_WIDTH]}",
            row["last used"][:DAY_WIDTH],
        )
    Console(width=wide).print(table)


def _shortened(level: str, room: int) -> str:
    """A level with its scopes, or with their number where they have no room."""
    first, *scopes = level.split()
    return level if len(level) <= room else f"{first} +{len(scopes)}"


def _row(key: Any, hints: Sequence[Any]) -> tuple[str, ...]:
    scopes = "".join(f" {name}={level}" for name, level in key.scopes.items())
    return (
        key.id,
        " ".join(legible(key.name).split()),
        hints[-1].hint if hints else "",
        f"{key.level}{scopes}",
        " ".join(sorted(key.permissions)),
        str(key.limit),
        _state(key, datetime.now(UTC)),
        _when(key.last_used_at) or "never",
    )


def _state(key: Any, now: datetime) -> str:
    if key.revoked_at:
        return "revoked"
    if not key.active(now):
        return "expired"
    return f"until {_when(key.expires_at)}" if key.expires_at else "active"


def _changes(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were named, by the fields of a key."""
    changes = {
        name: options[name] for name in ("level", "limit", "contact") if options[name] is not None
    }
    if options["name"] is not None:
        changes["name"] = _name(options["name"])
    if options["permissions"]:
        changes["permissions"] = frozenset(options["permissions"])
    if options["expires"] is not None:
        changes["expires_at"] = _expiry(options["expires"])
    if options["scopes"] or options["no_scopes"]:
        changes["scopes"] = dict(options["scopes"])
    return changes


def _name(text: str) -> str:
    if not text.strip() or len(text) > 200:
        raise click.BadParameter("write 1 to 200 characters", param_hint="--name")
    return text.strip()


def _expiry(value: Any) -> datetime | None:
    return None if value in (None, "", "never") else value


def _when(moment: datetime | None) -> str | None:
    return None if moment is None else write_instant(moment)


def _unknown(key_id: str) -> str:
    return f"no key has the id {key_id}; `clinic-gateway keys list` shows them"


def _odd(key_id: str) -> str:
    return (
        f"what is kept of the key {key_id} makes no sense here; it counts as revoked:"
        " make a new one, or run the version of the gateway that wrote it"
    )


def _place(config: Path | None) -> Any:
    from gateway.cli.configuration import store_shown
    from gateway.settings import load_settings

    return store_shown(load_settings(config))


def _with_store(config: Path | None, work: Callable[[Any], Awaitable[T]]) -> T:
    """Run work on the configured store's keys; what is refused is said in a sentence."""
    import asyncio

    from gateway.keys.store import KeyStore, OddKey, RevokedKey, UnknownKey
    from gateway.settings import check_own_place, load_settings
    from gateway.state import open_own_store

    async def run() -> T:
        check_own_place(config)
        store = open_own_store(load_settings(config))
        try:
            await store.migrate()
            return await work(KeyStore(store))
        finally:
            await store.aclose()

    try:
        return asyncio.run(run())
    except UnknownKey as error:
        fail(_unknown(str(error)))
    except OddKey as error:
        fail(_odd(str(error)))
    except RevokedKey:
        fail("this key was revoked, for good; `clinic-gateway keys create` makes a new one")
