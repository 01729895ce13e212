"""What the commands on the audit have in common: the settings, the store, the days, and times."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from gateway.audit.files import audit_folder
from gateway.audit.index import Index
from gateway.audit.questions import Days, Seen
from gateway.cli.options import CommandT, fail
from gateway.cli.policy.named import own_store
from gateway.keys.store import KeyStore
from gateway.settings import Settings, check_own_place, load_settings
from gateway.store import Store


class Day(click.ParamType[Any]):
    """A day, YYYY-MM-DD."""

    name = "DATE"

    def convert(self, value: Any, param: Any, ctx: Any) -> date:
        try:
            found = date.fromisoformat(str(value))
        except ValueError:
            found = None
        if found is None or str(found) != str(value):
            self.fail(f"{value} must be a day (UTC), such as 2026-11-21", param, ctx)
        return found


def days_options(command: CommandT) -> CommandT:
    """`--since` and `--until`: the parameters of those names."""
    until = click.option("--until", type=Day(), help="The last day that counts, in UTC.")
    since = click.option("--since", type=Day(), help="The first day that counts, in UTC.")
    wrapped: CommandT = since(until(command))
    return wrapped


def place_of_audit(config: Path | None) -> Settings:
    """The settings, where something says where the audit is."""
    check_own_place(config)
    return load_settings(config)


@asynccontextmanager
async def store_of(settings: Settings) -> AsyncIterator[Store]:
    """The gateway's own store; the end of the command where there is none yet."""
    async with own_store(settings) as store:
        if store is None:
            fail(f"nothing has been served yet from the state folder {settings.state}")
        yield store


@asynccontextmanager
async def indexed(settings: Settings) -> AsyncIterator[Store]:
    """The same, with an index that knows every line of this machine's folder."""
    async with store_of(settings) as store:
        try:
            await Index(store, audit_folder(settings)).catch_up()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            fail(f"{error.filename or audit_folder(settings)} cannot be read: {reason}")
        yield store


async def names_of_keys(store: Store) -> Callable[[str], str | None]:
    """The name of a key, by its id; None where it is gone, or there was none."""
    names = {key.id: key.name for key, _ in (await KeyStore(store).list()).keys}
    return names.get


def when(moment: datetime) -> str:
    """A time in UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def spans(seen: Seen) -> str:
    """How often, first and last."""
    times = "1 time" if seen.times == 1 else f"{seen.times} times"
    return f"{times}, first {when(seen.first)}, last {when(seen.last)}"


def between(days: Days) -> str:
    """The days in words, with a blank before."""
    since = f" since {days.since}" if days.since else ""
    return since + (f" until {days.until}" if days.until else "")
