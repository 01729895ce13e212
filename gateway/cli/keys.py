"""`clinic-gateway keys`: make, show, change, rotate and revoke the partners' keys."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.cli.deeds import RecordDeed, now, with_deeds, with_store
from gateway.cli.key_options import (
    read_overlap,
    settings_named,
    settings_of_a_key,
    write_overlap,
)
from gateway.cli.key_views import key_data, print_key, print_keys, when
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import CommandGroup, TextValue, config_option, fail, shared_options
from gateway.inquiries.keys import changes_told, settings_told
from gateway.keys.key import Key, new_key

if TYPE_CHECKING:  # to import it takes long: a command does, where it opens a store
    from gateway.keys.store import KeyStore

T = TypeVar("T")
# A key, the time by which it ends or not, and what may be told of its secrets.
KeyView = tuple[Key, datetime, Sequence[Any]]
LONGEST_LINE = 1024
key_argument = click.argument("wanted", metavar="KEY")


@click.group(cls=CommandGroup)
@config_option
def keys(config: Path | None) -> None:
    """Make, show, change, rotate and revoke the partners' keys."""


@keys.command()
@settings_of_a_key(new=True)
@shared_options
def create(config: Path | None, as_json: bool, **options: Any) -> None:
    """Make a key, and show its secret this once."""
    at = now()
    key = new_key(**settings_named(options), now=at)

    async def made(store: "KeyStore", deed: RecordDeed) -> tuple[str, datetime]:
        # read before the key is made: where it cannot be read, no new secret is lost
        latest = await store.key_time(at)
        async with deed("key made", key.id, **settings_told(key)):
            secret = await store.add(key)
        return secret, latest

    secret, latest = _change_keys(config, made, may_begin=True)
    print_key(key, as_json, latest, secret=secret)


@keys.command("list")
@shared_options
def list_keys(config: Path | None, as_json: bool) -> None:
    """All keys."""

    async def listed(store: "KeyStore") -> tuple[Any, datetime]:
        return await store.list(), await store.key_time(now())

    listing, at = _with_keys(config, listed)
    for key_id in listing.odd:
        click.echo(_odd(key_id), err=True)
    if as_json:
        click.echo(legible_json([key_data(key, hints) for key, hints in listing.keys]))
    elif listing.keys:
        print_keys(listing.keys, at)
    else:
        from gateway.cli.description import store_shown
        from gateway.settings import load_settings

        place = store_shown(load_settings(config))
        click.echo(f"no keys yet in {place}; `clinic-gateway keys create` makes one")


@keys.command()
@key_argument
@shared_options
def show(config: Path | None, as_json: bool, wanted: str) -> None:
    """One key.

    KEY is its id, or its name where no other key has that.
    """

    async def found(store: "KeyStore") -> KeyView:
        return await _view(store, await _id_of(store, wanted))

    key, at, hints = _with_keys(config, found)
    print_key(key, as_json, at, hints=hints)


@keys.command("update")
@key_argument
@settings_of_a_key(new=False)
@click.option("--no-scopes", is_flag=True, help="Take all scopes away.")
@click.option("--no-bookings-per-day", is_flag=True, help="Let it book any number a day.")
@click.option("--no-networks", is_flag=True, help="Let it be used from anywhere.")
@shared_options
def update_key(config: Path | None, as_json: bool, wanted: str, **options: Any) -> None:
    """Change a key; what is not named stays.

    KEY is its id, or its name where no other key has that.
    """
    changes = settings_named(options)
    if not changes:
        raise click.UsageError("nothing to change: name at least one setting")
    key_id = _with_keys(config, lambda store: _id_of(store, wanted))

    async def updated(store: "KeyStore", deed: RecordDeed) -> KeyView:
        # all that is told afterwards: where it cannot be read, nothing is changed
        before, *_ = await _view(store, key_id)
        news = changes_told(before, replace(before, **changes))
        async with deed("key changed", key_id, **{"name": before.name, **news}):
            await store.update(key_id, **changes)
        return await _view(store, key_id)

    key, at, hints = _change_keys(config, updated)
    print_key(key, as_json, at, hints=hints)


@keys.command()
@key_argument
@click.option(
    "--overlap", type=TextValue("DURATION", read_overlap), default="24h", show_default=True,
    help="How long the secret before it stays valid: a number and s, m, h or d, at most 90d.",
)  # fmt: skip
@shared_options
def rotate(config: Path | None, as_json: bool, wanted: str, overlap: timedelta) -> None:
    """Give a key a new secret, and show it this once.

    KEY is its id, or its name where no other key has that.
    """
    at = now()
    key_id = _with_keys(config, lambda store: _id_of(store, wanted))

    async def rotated(store: "KeyStore", deed: RecordDeed) -> tuple[Any, datetime]:
        # both are read before: where one cannot be read, no new secret is lost
        name, latest = (await store.get(key_id)).name, await store.key_time(at)
        async with deed("key rotated", key_id, name=name, overlap=write_overlap(overlap)):
            made = await store.rotate(key_id, overlap, at)
        return made, latest

    made, latest = _change_keys(config, rotated)
    print_key(made.key, as_json, latest, secret=made.secret, hints=made.secrets)


@keys.command()
@key_argument
@click.option("--yes", is_flag=True, help="Do not ask. Without a terminal it is required.")
@shared_options
def revoke(config: Path | None, as_json: bool, wanted: str, yes: bool) -> None:
    """Take a key away, for good.

    KEY is its id, or its name where no other key has that. On a terminal the command asks first.
    """
    if not (yes or sys.stdin.isatty()):
        raise click.UsageError(
            "without a terminal this needs --yes: a revoked key never works again"
        )

    async def found(store: "KeyStore") -> tuple[Key, Sequence[Any]]:
        return await store.show(await _id_of(store, wanted))

    async def revoked(store: "KeyStore", deed: RecordDeed) -> tuple[Key, Sequence[Any]]:
        async with deed("key revoked", key.id, name=key.name):
            await store.revoke(key.id, now())
        return await store.show(key.id)

    key, hints = _with_keys(config, found)
    if key.revoked_at is not None:
        print_key(key, as_json, now(), hints=hints)
        click.echo(f"this key was revoked already, at {when(key.revoked_at)}", err=True)
        return
    if not yes and not click.confirm(_question(key), err=True):
        fail("nothing was revoked")
    # what is printed is this machine's time: a latest time that is unreadable is no matter
    key, hints = _change_keys(config, revoked)
    print_key(key, as_json, now(), hints=hints)
    if not as_json:
        name = legible(key.name)
        click.echo(f"\n{name} is revoked: within a second every call with it is refused, for good")


def _question(key: Key) -> str:
    """Which key it is, whose, and when it was last used."""
    contact = f" ({key.contact})" if key.contact else ""
    used = f"last used {when(key.last_used_at)}" if key.last_used_at else "never used"
    return legible(f"Revoke {key.name}{contact}, {key.id}, {used}? It never works again.")


@keys.command()
@shared_options
def verify(config: Path | None, as_json: bool) -> None:
    """Say of a secret on stdin whether it is well formed, or mistyped.

    Nothing is asked of any store: whether a key has the secret, a call to the gateway tells.
    """
    from gateway.keys.secret import well_formed

    if sys.stdin.isatty():
        secret = str(click.prompt("Secret", hide_input=True, err=True))
    else:
        secret = sys.stdin.buffer.readline(LONGEST_LINE).decode("utf-8", "replace")
    sound = well_formed(secret.strip())
    if as_json:
        click.echo(legible_json({"wellFormed": sound}))
    elif sound:
        click.echo("well formed: it can be a secret of a gateway")
    if not sound:
        fail("mistyped or cut off: no gateway has made this secret")


def _with_keys(config: Path | None, work: Callable[["KeyStore"], Awaitable[T]]) -> T:
    """Runs work that reads the configured store's keys."""
    from gateway.keys.store import KeyStore

    with _refusals():
        return with_store(config, lambda store: work(KeyStore(store)))


def _change_keys(
    config: Path | None,
    work: Callable[["KeyStore", RecordDeed], Awaitable[T]],
    *,
    may_begin: bool = False,
) -> T:
    """Runs work that changes the keys, as `with_deeds`."""
    from gateway.keys.store import KeyStore

    with _refusals():
        return with_deeds(
            config, lambda store, deed: work(KeyStore(store), deed), may_begin=may_begin
        )


@contextmanager
def _refusals() -> Iterator[None]:
    from gateway.keys.base import OddKey, RevokedKey, UnknownKey

    try:
        yield
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


async def _view(store: "KeyStore", key_id: str) -> KeyView:
    key, hints = await store.show(key_id)
    return key, await store.key_time(now()), hints


async def _id_of(store: "KeyStore", wanted: str) -> str:
    """The id of the key with that id or name; else the end of the command, with nothing done."""
    listing = await store.list()
    if wanted in listing.odd:
        return wanted
    return one_named([key for key, _ in listing.keys], wanted).id


def one_named(among: Sequence[Key], name: str) -> Key:
    """The key with that id, or the only one with that name; else the end of the command."""
    found = [key for key in among if key.id == name] or [key for key in among if key.name == name]
    if not found:
        fail(
            f"no key has the id or the name {legible(name)}; `clinic-gateway keys list` shows them"
        )
    if len(found) > 1:
        ids = ", ".join(key.id for key in found)
        fail(f"{len(found)} keys have the name {legible(name)}; name one by its id: {ids}")
    return found[0]
