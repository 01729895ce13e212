"""The policies that commands compare and explain: a file, the one that runs, or one that ran."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.problems import DocumentErrors
from gateway.policy.reading.document import load_policy
from gateway.policy.rules import Rules
from gateway.policy.running.found import find
from gateway.policy.running.stored import read_version
from gateway.policy.running.versions import Version, Versions
from gateway.settings import Settings, StartRefused
from gateway.state import open_own_store, store_place
from gateway.store import Store

RUNNING = "running"
_begins_hash = re.compile("[0-9a-f]{1,7}").fullmatch
_hash = re.compile("[0-9a-f]{8,64}").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A policy by the name it was asked for, with its text.

    `place` is where its lines can be read: its file as long as that holds the very same bytes, else
    the name.
    """

    name: str
    hash: str
    content: bytes
    rules: Rules
    place: str


@asynccontextmanager
async def own_store(settings: Settings) -> AsyncIterator[Store | None]:
    """The gateway's own store, where there is one already; a question makes none."""
    place = store_place(settings)
    if isinstance(place, Path) and not place.exists():
        yield None
        return
    store = open_own_store(settings)
    try:
        await store.migrate()
        yield store
    finally:
        await store.aclose()


async def policy_named(name: str, store: Store | None) -> Named:
    """The policy in a file, the one that is `running`, or one that ran, by its hash.

    DocumentErrors of a file that is no policy; StartRefused where there is none of that name.
    """
    if name == RUNNING:
        version = await Versions(store).last() if store else None
        if version is None:
            raise StartRefused(
                "no policy has run so far with this configuration: name a file in place of running"
            )
        return _kept(RUNNING, version)
    if is_kept(name) and _hash(name):
        version = await Versions(store).find(name) if store else None
        if version is None:
            raise StartRefused(f"no policy that ran here has a hash that begins with {name}")
        return _kept(version.hash[:12], version)
    if is_kept(name):
        raise StartRefused(
            f"there is no file {name}; of the hash of a policy that ran, write at least 8 digits"
        )
    return in_file(Path(name))


def is_kept(name: str) -> bool:
    """Whether a name is no file's but that of a policy in the store."""
    return not _is_file(name) and bool(name == RUNNING or _hash(name) or _begins_hash(name))


def _is_file(name: str) -> bool:
    return Path(name).is_file()


def in_file(path: Path) -> Named:
    """The policy in a file; DocumentErrors."""
    policy = load_policy(path, lambda trouble: None)
    return Named(
        name=policy.file,
        hash=policy.hash,
        content=path.read_bytes(),
        rules=policy.rules,
        place=policy.file,
    )


def _kept(name: str, version: Version) -> Named:
    try:
        rules = read_version(version)
    except DocumentErrors as error:
        raise StartRefused(f"the policy {version.hash[:12]} in the store is damaged") from error
    same = find(Path(version.file)).hash == version.hash
    return Named(
        name=name,
        hash=version.hash,
        content=version.content,
        rules=rules,
        place=version.file if same else name,
    )
