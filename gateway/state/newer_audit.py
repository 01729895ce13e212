"""The audit that is newer than its store, or a backup.

After a restore its chains and deeds enter the store.
"""

import asyncio
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from gateway.administrators.log import DONE, FAILED, Deed, DeedLog
from gateway.audit.chains import Chains, DayFile, Known, audit_folder, day_files, is_open, place_of
from gateway.audit.entries import ChainHead, key_file, read_secrets
from gateway.audit.verification import BrokenChain, Walk
from gateway.contract.fields import write_instant
from gateway.settings import Settings
from gateway.store import Store

_DEED = b'"kind":"deed"'


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerAudit:
    """Verified chains that the store does not know, and deeds that it lacks, the oldest first.

    `broken` says of each other such chain where it is not as it was written.
    """

    chains: Sequence[Known]
    deeds: Sequence[Deed]
    broken: Sequence[str]


async def read_newer_audit(settings: Settings, store: Store) -> NewerAudit:
    """What the day files have beyond the store. StoreError, OSError, StartRefused."""
    folder = audit_folder(settings)
    files = await asyncio.to_thread(_by_chain, folder)
    known = {each.id: each for each in await Chains(store).known()}
    own = [each for name in files if (each := known.get(name))]
    new = [_unknown(folder, some) for name, some in files.items() if name not in known]
    last = await DeedLog(store).last(1)
    after = last[0].at if last else datetime.min.replace(tzinfo=UTC)
    secrets = read_secrets(key_file(settings)) if files else ()
    chains, broken, deeds = [], [], list[Deed]()
    for each in (*own, *new):
        walk = Walk(folder, each, secrets)
        try:
            await asyncio.to_thread(walk.follow, files[each.id])
        except BrokenChain as error:
            broken += [str(error)] if each.id not in known else []
            continue
        # those that had ended, in the verified lines that follow the head that the store knows
        for number, deed in chain.from_iterable(map(_deeds_in, files[each.id])):
            is_beyond = each.head.seq < number <= walk.head.seq
            is_lacking = each.id not in known or deed.at > after
            if is_beyond and is_lacking and deed.outcome in (DONE, FAILED):
                deeds.append(deed)
        if each.id not in known:
            chains.append(replace(each, head=walk.head, ended=walk.ended))
    deeds.sort(key=lambda deed: deed.at)
    return NewerAudit(chains=chains, deeds=deeds, broken=broken)


async def enter(store: Store, newer: NewerAudit) -> None:
    """Make the store know it, all at once. StoreError."""
    async with store.begin() as connection:
        await Chains.enter(connection, newer.chains)
        for each in newer.deeds:
            await DeedLog.enter(connection, each)


def _by_chain(folder: Path) -> dict[str, list[DayFile]]:
    """The files of each chain that nobody writes to."""
    files = sorted(day_files(folder), key=lambda each: (each.chain, each.day))
    found = {chain: list(own) for chain, own in groupby(files, key=lambda each: each.chain)}
    return {chain: own for chain, own in found.items() if not is_open(own[-1].path)}


def _unknown(folder: Path, files: Sequence[DayFile]) -> Known:
    """A chain as it was when it began."""
    return Known(
        id=files[0].chain,
        place=place_of(folder) or "",
        host=socket.gethostname(),
        begun=_begun(files[0]),
        head=ChainHead(),
        ended=False,
        dropped=None,
        base=ChainHead(),
        base_seal="",
    )


def _begun(file: DayFile) -> datetime:
    """As its first line says, unverified; else that day's midnight."""
    with file.path.open("rb") as lines:
        try:
            return datetime.fromisoformat(json.loads(lines.readline())["time"])
        except (ValueError, KeyError, TypeError):
            return datetime.combine(file.day, time(), UTC)


def deeds_since(folder: Path, moment: datetime, names: Mapping[str, str]) -> list[str]:
    """What was done to keys, each a sentence, the oldest first; `names` by key id. OSError."""
    done = [
        deed
        for file in day_files(folder)
        if file.day >= moment.astimezone(UTC).date()
        for _, deed in _deeds_in(file)
        if deed.outcome == DONE and deed.at > moment and deed.deed.startswith("key ")
    ]
    return [_sentence(deed, names) for deed in sorted(done, key=lambda deed: deed.at)]


def _sentence(deed: Deed, names: Mapping[str, str]) -> str:
    name = names.get(deed.subject) or deed.details.get("name")
    whom = f"{name} ({deed.subject})" if name else deed.subject
    return f"{deed.deed} after the backup: {whom}, by {deed.who}, {write_instant(deed.at)}"


def _deeds_in(file: DayFile) -> Iterator[tuple[int, Deed]]:
    """Deeds with the numbers of their lines, unverified; a line cut off is left out. OSError."""
    with file.path.open("rb") as lines:
        for line in lines:
            if _DEED in line[:64]:
                with suppress(ValueError):
                    yield _deed(json.loads(line))


def _deed(line: Mapping[str, Any]) -> tuple[int, Deed]:
    deed = Deed(
        at=datetime.fromisoformat(line["time"]),
        who=line["who"],
        deed=line["deed"],
        subject=line["subject"],
        outcome=line["result"],
        details=line["details"],
    )
    return line["seq"], deed
