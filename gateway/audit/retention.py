"""Old days go: first the store is told up to where, so that nobody takes it for a deletion.

What is dropped is read before, line by line: a name says nothing about what a file holds.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import date
from itertools import groupby, takewhile
from pathlib import Path

from gateway.audit.chain import Head
from gateway.audit.chains import Chains, Known
from gateway.audit.dropped import base_seal
from gateway.audit.files import DayFile, day_files, is_open
from gateway.audit.secrets import Secret
from gateway.audit.tail import sync_folder
from gateway.audit.walk import Broken, Walk, begins_rightly, rest


class Retention:
    """Of one folder. `kept` hears, once for each chain, why its old days do not go."""

    def __init__(self, chains: Chains, folder: Path, kept: Callable[[str], None]) -> None:
        self._chains = chains
        self._folder = folder
        self._kept = kept
        self._told: set[str] = set()

    async def expire(self, secrets: Sequence[Secret], before: date) -> int:
        """Drop the files of the days before that one; how many. StoreError, OSError.

        `secrets` are those of the audit, the newest first. A chain whose old files are not as they
        were written keeps them: they are what there is to look at.
        """
        dropped = 0
        known = {each.id: each for each in await self._chains.known()}
        files = sorted(day_files(self._folder), key=lambda each: (each.chain, each.day))
        for chain, group in groupby(files, key=lambda each: each.chain):
            own = list(group)
            old = list(takewhile(lambda each: each.day < before and not is_open(each.path), own))
            if old and await self._may_go(known.get(chain), old, secrets, whole=old == own):
                for each in old:
                    each.path.unlink(missing_ok=True)
                dropped += len(old)
        if dropped:
            sync_folder(self._folder)
        return dropped

    async def _may_go(
        self, known: Known | None, old: Sequence[DayFile], secrets: Sequence[Secret], *, whole: bool
    ) -> bool:
        """Once the store knows up to where; a chain that it does not know has nobody to tell."""
        try:
            if known is None:
                await asyncio.to_thread(_check_names, old)
                return True
            base = await asyncio.to_thread(_walked, self._folder, known, old, secrets, whole)
        except (Broken, FileNotFoundError) as error:
            await self._keep(known, old[0].chain, str(error))
            return False
        if base.seq > known.base.seq:
            seal = base_seal(secrets[0], known.id, old[-1].day, base)
            await self._chains.drop(known.id, old[-1].day, base, seal)
        return True

    async def _keep(self, known: Known | None, chain: str, why: str) -> None:
        """Say so, unless another process has just dropped what was being read."""
        now = next((each for each in await self._chains.known() if each.id == chain), None)
        if (now and now.base) == (known and known.base) and chain not in self._told:
            self._told.add(chain)
            self._kept(why)


def _check_names(files: Sequence[DayFile]) -> None:
    """Broken where one does not begin as the file of its day and chain."""
    for each in files:
        if not begins_rightly(each):
            raise Broken(each.path, 1, "does not begin as the file of that day and chain")


def _walked(
    folder: Path, known: Known, old: Sequence[DayFile], secrets: Sequence[Secret], whole: bool
) -> Head:
    """The last line of these files, each verified; where they are the `whole` chain, its end too.

    An empty file has no line and changes nothing. Broken; OSError.
    """
    walk = Walk(folder, known, secrets, rest)
    walk.check_base()
    for each in walk.remaining(old):
        walk.file(each)
    if whole:
        walk.check_head(old)
    return walk.head
