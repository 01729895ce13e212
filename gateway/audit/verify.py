"""Whether the day files are as they were written: every chain, line by line, against the store."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from gateway.audit.chains import Known
from gateway.audit.files import DayFile, day_files, is_open, strangers
from gateway.audit.secrets import Secret
from gateway.audit.walk import Broken, Pause, Walk, in_lines

RUNS, ENDED, CUT_OFF = "runs", "ended", "cut off"


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What is to be said of one chain; `broken` is empty where it is whole.

    `state`: it runs; it ended in order; or its process was cut off, and may have lost its last
    moment. `notes` are no alarm.
    """

    chain: str
    lines: int = 0
    files: int = 0
    state: str = CUT_OFF
    broken: str = ""
    notes: list[str] = field(default_factory=list)


def chains_in(folder: Path) -> frozenset[str]:
    """The chains that the folder has files of."""
    return frozenset(each.chain for each in day_files(folder))


def verify(
    folder: Path,
    before: Collection[str],
    known: Sequence[Known],
    secrets: Sequence[Secret],
    pause: Pause | None = None,
) -> Iterator[Verdict]:
    """Each chain that the folder or the store has.

    Processes may begin and write meanwhile: `before` are the chains that the folder had before
    `known` was read, and that was before this call. `pause` is called now and then.
    """
    files = sorted(day_files(folder), key=lambda each: (each.chain, each.day))
    own = {chain: list(group) for chain, group in groupby(files, key=lambda each: each.chain)}
    for each in known:
        walk = Walk(folder, each, secrets, pause)
        yield _verdict(walk, folder, each, own.pop(each.id, []))
    for chain, group in own.items():
        if chain not in before:
            continue
        place = group[0].path
        yield Verdict(chain=chain, broken=f"{place}: the store knows no chain of that name")
    for path in strangers(folder):
        yield Verdict(chain="", broken=f"{path}: no file of the audit has such a name")


def _verdict(walk: Walk, folder: Path, known: Known, files: Sequence[DayFile]) -> Verdict:
    """All that is to be said of one chain."""
    broken = ""
    try:
        walk.check_base()
        for each in walk.remaining(files):
            walk.file(each)
        walk.check_head(files)
    except Broken as error:
        broken = str(error)
    except OSError as error:
        broken = f"{error.filename}: cannot be read: {(error.strerror or '').lower()}"
    state = CUT_OFF
    if walk.ended:
        state = ENDED
    elif files and is_open(files[-1].path):
        state = RUNS
    if state != RUNS and walk.head.seq > known.head.seq:
        beyond = walk.head.seq - known.head.seq
        walk.notes.append(
            f"{files[-1].path}: the files go {in_lines(beyond)} beyond what the store recorded"
        )
    notes = [*walk.notes, *([walk.torn] if walk.torn else [])]
    return Verdict(
        chain=known.id, lines=walk.lines, files=walk.files, state=state, broken=broken, notes=notes
    )


def is_foreign(known: Sequence[Known], place: str | None, *, shared: bool) -> bool:
    """Whether the folder's name is none that the store knows: nothing of it could be verified."""
    return shared and place is not None and all(each.place != place for each in known)


def elsewhere(known: Sequence[Known], place: str | None, *, shared: bool) -> list[Known]:
    """Chains of other machines' folders, where machines share the store: verified there."""
    return [each for each in known if shared and place is not None and each.place != place]
