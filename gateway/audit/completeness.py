"""Whether the index has every line: what the chains have more, and what of its own is gone."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path

from gateway.audit.chains import Chains, Known
from gateway.audit.files import day_files, place_of
from gateway.audit.index import Index, Progress
from gateway.audit.questions import first_loss
from gateway.audit.verify import elsewhere
from gateway.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Lines of one folder that the store knows to be written, and the index does not have.

    All that was written there until `until` (UTC, to the second) it has. `here` is the folder that
    was just read: its files do not have them either.
    """

    host: str
    here: bool
    lines: int
    until: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the index is worth once it has been brought up to date.

    `lines` have just been taken in; `lost` is the first day of which nothing is left; `unknown` is
    how many chains of the folder count that the store does not know, as after a restored backup.
    `in_time` is whether there was time for all of this folder.
    """

    lines: int
    gaps: Sequence[Gap]
    lost: date | None
    unknown: int
    in_time: bool = True


async def brought_up(
    store: Store, folder: Path, backlog: Callable[[int], None], within: float | None = None
) -> State:
    """Take in what is new; `backlog` is told how many bytes that is. StoreError, OSError.

    What is not taken in `within` so many seconds is taken in another time.
    """
    chains, index = Chains(store), Index(store, folder)
    known = await chains.known()
    others = elsewhere(known, place_of(folder), shared=chains.shared)
    backlog(await index.backlog())
    files = await asyncio.to_thread(day_files, folder)
    lines, in_time = 0, True
    try:
        async with asyncio.timeout(within):
            lines = await index.catch_up()
    except TimeoutError:
        in_time = False
    progress = await index.progress()
    return State(
        lines=lines,
        in_time=in_time,
        gaps=gaps(known, progress, others),
        lost=await first_loss(store, files, progress),
        unknown=len({each.chain for each in files} - {each.id for each in known}),
    )


def gaps(
    known: Sequence[Known], progress: Mapping[str, Progress], others: Collection[Known]
) -> list[Gap]:
    """Where `known` was read before the files were, and `others` are chains of other folders."""
    found = []
    behind = [each for each in known if _missing(each, progress)]
    for (_, host), chains in groupby(sorted(behind, key=_folder), key=_folder):
        own = list(chains)
        lines, until = sum(_missing(each, progress) for each in own), _until(own, progress)
        found.append(Gap(host=host, here=own[0] not in others, lines=lines, until=until))
    return found


def _folder(chain: Known) -> tuple[str, str]:
    return chain.place, chain.host


def _missing(chain: Known, progress: Mapping[str, Progress]) -> int:
    at = progress.get(chain.id)
    return max(0, chain.head.seq - max(chain.base.seq, at.seq if at else 0))


def _until(chains: Sequence[Known], progress: Mapping[str, Progress]) -> str:
    times = [
        at.time if (at := progress.get(each.id)) else each.begun.isoformat() for each in chains
    ]
    return min(times)[:19] + "Z"
