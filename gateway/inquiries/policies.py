"""The policies that are compared and explained: a file, the one that runs, or one that ran."""

import re
from dataclasses import dataclass
from pathlib import Path

from adapters.documents.problems import DocumentErrors
from gateway.policy.reading.document import load_policy
from gateway.policy.reading.spots import Spots, spots_of
from gateway.policy.rules import Rules
from gateway.policy.running.file import find
from gateway.policy.running.text import read_version
from gateway.policy.running.versions import Version, Versions
from gateway.settings import StartRefused
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
        return kept(RUNNING, version)
    if is_kept(name) and _hash(name):
        version = await Versions(store).find(name) if store else None
        if version is None:
            raise StartRefused(f"no policy that ran here has a hash that begins with {name}")
        return kept(version.hash[:12], version)
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


def kept(name: str, version: Version) -> Named:
    """A policy that ran or waited; StartRefused where its text is not the one that did."""
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


def deciding_lines(content: bytes) -> Spots:
    """Where a text says what; nowhere in one that no file could hold, as what two both show."""
    try:
        return spots_of(content, "")
    except DocumentErrors:
        return Spots({}, {}, {})
