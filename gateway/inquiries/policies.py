"""Finds policies by name, compares two for all keys, and enters decisions on one."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from adapters.documents.problems import DocumentErrors
from gateway.contract.operations import OPERATIONS
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.policy.policy import Policy, Rules, compile_policy, narrowed, no_wider
from gateway.policy.reading.document import load_policy, read_version
from gateway.policy.running.keeper import APPROVAL, find
from gateway.policy.running.versions import Event, Process, Versions
from gateway.policy.telling.wording import PolicyChange, changes
from gateway.settings import StartRefused
from gateway.store import Store
from gateway.usage import answered

RUNNING = "running"
# The fewest digits of a hash that name a policy, and the days whose answers are counted.
LEAST_DIGITS, DAYS = 8, 30
# Seconds that the running gateways have to look, and between two checks whether they did.
LOOKED_IN, ASK_AGAIN = 10.0, 0.1
_digits = re.compile("[0-9a-f]{1,64}").fullmatch
_line_end = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


async def policy_named(name: str, store: Store | None) -> Policy:
    """Returns the policy in a file, the one that is `running`, or one that ran, by its hash.

    Its `file` is that name. Its version's `file` is the file that it came from while that holds
    the same bytes, else the name too.

    Raises DocumentErrors for a file that is no policy, and StartRefused where none has that name or
    its text in the store is damaged.
    """
    if not is_kept(name):
        return load_policy(Path(name), lambda trouble: None)
    if name != RUNNING and len(name) < LEAST_DIGITS:
        raise StartRefused(
            f"there is no file {name}; of the hash of a policy that ran, write at least"
            f" {LEAST_DIGITS} digits"
        )
    version = None
    if store is not None:
        versions = Versions(store)
        version = await (versions.last() if name == RUNNING else versions.find(name))
    if version is None:
        text = f"no policy that ran here has a hash that begins with {name}"
        if name == RUNNING:
            text = "no policy has run so far with this configuration: name a file in its place"
        raise StartRefused(text)
    short = version.hash[:12]
    name = RUNNING if name == RUNNING else short
    is_file = find(Path(version.file)).hash == version.hash
    try:
        rules = read_version(version)
    except DocumentErrors as error:
        raise StartRefused(f"the policy {short} in the store is damaged") from error
    policy = compile_policy(version, rules, lambda trouble: None)
    readable = version if is_file else replace(version, file=name)
    return replace(policy, file=name, version=readable)


def is_kept(name: str) -> bool:
    """Returns whether a name is that of a policy in the store, and not of a file."""
    return not Path(name).is_file() and (name == RUNNING or _digits(name) is not None)


def lines_of(content: bytes) -> list[str]:
    """Returns the lines without their ends, counted as the policy's reader does."""
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return _line_end.split(content.decode("utf-16" if utf16 else "utf-8-sig", "replace"))


def outlook(running: Rules, new: Rules) -> tuple[Sequence[PolicyChange], Sequence[PolicyChange]]:
    """Returns what of new rules takes effect at once while their cases fail, and what waits."""
    first = new if no_wider(new, running) else narrowed(running, new) or running
    return changes(running, first), changes(first, new)


@dataclass(frozen=True, slots=True)
class Touched:
    """A change, the active keys that it affects, and how many answers showed them the resource."""

    change: PolicyChange
    keys: Sequence[Key]
    answers: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two policies and what differs, with notes. `known` is False where no store has keys."""

    old: Policy
    new: Policy
    touched: Sequence[Touched]
    known: bool
    notes: Sequence[str] = ()

    @property
    def widens(self) -> bool:
        """Whether anybody may see something that was not seen."""
        return any(touched.change.widens for touched in self.touched)


async def compared(
    old: Policy, new: Policy, store: Store | None, now: datetime, notes: Sequence[str] = ()
) -> Comparison:
    """Compares two policies for the keys and answers that the store knows."""
    keys = list[Key]()
    if store is not None:
        listing, at = await KeyStore(store).list(), await KeyStore(store).key_time(now)
        keys = [key for key, _ in listing.keys if key.active(at)]
    affected = await touched(changes(old.rules, new.rules), keys, store, now)
    return Comparison(old, new, affected, known=store is not None, notes=notes)


async def touched(
    found: Sequence[PolicyChange], keys: Sequence[Key], store: Store | None, now: datetime
) -> list[Touched]:
    """Returns each change with the keys that may call the resource and have one of the levels."""
    resources = {change.resource for change in found}
    counts: Mapping[tuple[str, str], int] = {}
    if store is not None and found:
        ids = sorted(it.id for it in OPERATIONS if it.returns.name in resources)
        counts = await answered(store, now - timedelta(days=DAYS), ids)

    def reached(change: PolicyChange) -> Touched:
        name = change.resource
        calls = {it.id: it.permission for it in OPERATIONS if it.returns.name == name}
        may_ask = (key for key in keys if not key.permissions.isdisjoint(calls.values()))
        some = [key for key in may_ask if key.level_for(name) in change.levels]
        answers = sum(counts.get((key.id, operation), 0) for key in some for operation in calls)
        return Touched(change, some, answers)

    return await asyncio.to_thread(lambda: [reached(change) for change in found])


@dataclass(frozen=True, slots=True)
class Reload:
    """The running gateways, and the revision at which each was asked to look."""

    running: Sequence[Process]
    revision: int

    @property
    def late(self) -> list[Process]:
        return [process for process in self.running if process.revision < self.revision]


async def looked(
    versions: Versions,
    now: Callable[[], datetime],
    decision: Event | None = None,
    *,
    within: float = LOOKED_IN,
) -> Reload:
    """Has the running gateways look; returns them once all have looked or the time is up."""
    waited_for = {process.id for process in await versions.running(now())}
    revision = await versions.ask(decision)
    loop = asyncio.get_running_loop()
    until = loop.time() + within
    while True:
        reload = Reload(await versions.running(now()), revision)
        if waited_for.isdisjoint(process.id for process in reload.late) or loop.time() >= until:
            return reload
        await asyncio.sleep(ASK_AGAIN)


def waiting(running: Sequence[Process]) -> list[str]:
    """Returns the hashes of the policies that wait for an approval somewhere, each once."""
    states = (process.state for process in running)
    return sorted({str(it["waiting"]) for it in states if it.get("waitsFor") == APPROVAL})
