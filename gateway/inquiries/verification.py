"""Whether this machine's audit is as it was written, and how far somebody is who looks."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.audit.chains import PLACE, Chains, Known, audit_folder, place_of
from gateway.audit.entries import key_file, read_secrets
from gateway.audit.verification import REST, ChainVerdict, chains_in, elsewhere, is_foreign, verify
from gateway.settings import Settings
from gateway.store import Store


class Stopped(Exception):
    """Nobody waits for the outcome any more."""


class Progress:
    """How many lines were looked at, of how many; read by others while a thread goes on.

    It leaves the thread some rest, so that calls beside it are answered.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.all = 0
        self._before = 0
        self._stops = False

    def __call__(self, lines: int) -> None:
        """So many of one chain. Stopped."""
        if self._stops:
            raise Stopped
        self.lines = self._before + lines
        time.sleep(REST)

    def chain(self, lines: int) -> None:
        """A whole chain had so many."""
        self._before += lines
        self.lines = self._before

    def stop(self) -> None:
        """The thread ends within a moment."""
        self._stops = True


@dataclass(frozen=True, slots=True)
class Verified:
    """What is to be said of each chain; `others` are those of other folders, verified there."""

    verdicts: Sequence[ChainVerdict]
    others: Sequence[Known]

    @property
    def is_sound(self) -> bool:
        """Whether every line is as it was written, and none is missing."""
        return not any(each.broken for each in self.verdicts)


async def verify_audit(
    settings: Settings, store: Store, progress: Progress | None = None
) -> Verified:
    """Every chain of the folder against the heads in the store, gently with a `progress`.

    StartRefused, where the audit's key cannot be read; StoreError, OSError.
    """
    folder = audit_folder(settings)
    before = await asyncio.to_thread(chains_in, folder)
    chains = Chains(store)
    known = await chains.known()
    place, shared = place_of(folder), chains.shared
    others = elsewhere(known, place, shared=shared)
    mine = [each for each in known if each not in others]
    secrets = read_secrets(key_file(settings)) if mine else ()
    if progress is not None:
        progress.all = sum(max(0, each.head.seq - each.base.seq) for each in mine)

    def verified() -> list[ChainVerdict]:
        found = []
        for each in verify(folder, before, mine, secrets, progress):
            found.append(each)
            if progress is not None:
                progress.chain(each.lines)
        return found

    try:
        found = await asyncio.to_thread(verified)
    except asyncio.CancelledError:
        if progress is not None:
            progress.stop()
        raise
    if is_foreign(known, place, shared=shared):
        text = f"{folder / PLACE}: the store knows no folder of that name"
        found.append(ChainVerdict(chain="", broken=text))
    return Verified(found, others)
