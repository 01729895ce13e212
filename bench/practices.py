"""The two practices that are compared on one server: made, opened as the gateway does, dropped."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from adapters.base import Adapter, Trouble
from examples import dropping
from examples.launch import Example, prepare, with_database
from examples.mariadb_eav.__main__ import EXAMPLE as MARIADB
from examples.postgres_slots.__main__ import EXAMPLE as POSTGRES
from gateway.backend import bare_adapter_of
from gateway.sealing import sealing_secret
from gateway.settings import load_settings
from gateway.store import open_store

EXAMPLES = {"postgres": POSTGRES, "mariadb": MARIADB}


@dataclass(frozen=True, kw_only=True)
class Made:
    """A practice on a server, with its account, and the gateway's configuration for it."""

    example: Example
    server: str
    folder: Path

    @property
    def name(self) -> str:
        return self.example.name


def make(example: Example, server: str, name: str, folder: Path, scale: float) -> Made:
    """The practice under that name; one that was kept is taken as it is."""
    named = replace(example, name=name)
    made = Made(example=named, server=server, folder=folder / name)
    kept = named.exists(with_database(server, name))
    print(f"{'taking' if kept else 'making'} the database {name}", file=sys.stderr)
    try:
        prepare(named, server, made.folder, scale=scale)
    except BaseException:
        if not kept:
            drop(made)
        raise
    return made


def drop(made: Made) -> None:
    """Remove the database and its account."""
    asyncio.run(dropping.drop(made.server, made.name))


@contextmanager
def made_practices(
    example: Example, server: str, names: dict[str, float], folder: Path, *, keep: bool
) -> Iterator[list[Made]]:
    """A practice per name, of that scale; they go at the end unless they are to be kept."""
    made: list[Made] = []
    try:
        for name, scale in names.items():
            made.append(make(example, server, name, folder, scale))
        yield made
    finally:
        for each in [] if keep else made:
            drop(each)


@asynccontextmanager
async def opened(made: Made) -> AsyncIterator[Adapter]:
    """The practice's adapter, through its mapping and its account of few rights."""
    settings = load_settings(made.folder / "gateway.yaml", {})
    store = open_store(f"sqlite:///{made.folder}/gateway.db")
    await store.migrate()
    secret = await sealing_secret(settings, store)
    adapter = await bare_adapter_of(settings, secret, _untold, store)
    try:
        await adapter.check()
        yield adapter
    finally:
        await adapter.aclose()
        await store.aclose()


def _untold(trouble: Trouble) -> None:
    """What can't be read in a practice is not what is measured here."""
