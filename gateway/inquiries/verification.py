"""Whether this machine's audit is as it was written, and how far somebody is who looks."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.audit.chains import PLACE, Chains, Known, audit_folder, files_by_chain, place_of
from gateway.audit.entries import key_file, read_secrets
from gateway.audit.verification import REST, ChainVerdict, elsewhere, is_foreign, verify
from gateway.settings import Settings
from gateway.store import Store


class Stopped(Exception):
    """Nobody waits for the outcome any more."""


class VerifyProgress:
    """How many lines were looked at, of how many; read by others while a thread goes on.

    It leaves the thread some rest, so that calls beside it are answered.
    """

    def __init__(self) -> None:
        self.lines = self.all = self.before = 0
        self.stops = False

    def __call__(self, lines: int) -> None:
        """Counts the lines of one chain so far; raises Stopped."""
        if self.stops:
            raise Stopped
        self.lines = self.before + lines
        time.sleep(REST)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What is to be said of each chain; `others` are those of other folders, verified there."""

    verdicts: Sequence[ChainVerdict]
    others: Sequence[Known]

    @property
    def is_sound(self) -> bool:
        """Whether every line is as it was written, and none is missing."""
        return not any(each.broken for each in self.verdicts)


async def verify_audit(
    settings: Settings, store: Store, progress: VerifyProgress | None = None
) -> AuditReport:
    """Compares every chain of the folder with the store, gently with a `progress`.

    Raises StartRefused where the audit's key cannot be read; StoreError, OSError.
    """
    folder, chains = audit_folder(settings), Chains(store)
    before = await asyncio.to_thread(files_by_chain, folder)
    known = await chains.known()
    place, shared = place_of(folder), chains.shared
    others = elsewhere(known, place, shared=shared)
    mine = [chain for chain in known if chain not in others]
    secrets = read_secrets(key_file(settings)) if mine else ()
    told = progress or VerifyProgress()
    told.all = sum(max(0, chain.head.seq - chain.base.seq) for chain in mine)

    def verdicts() -> list[ChainVerdict]:
        found = []
        for verdict in verify(folder, before, mine, secrets, progress):
            found.append(verdict)
            told.lines = told.before = told.before + verdict.lines
        return found

    try:
        found = await asyncio.to_thread(verdicts)
    except asyncio.CancelledError:
        told.stops = True
        raise
    if is_foreign(known, place, shared=shared):
        text = f"{folder / PLACE}: the store knows no folder of that name"
        found.append(ChainVerdict(chain="", broken=text))
    return AuditReport(found, others)
