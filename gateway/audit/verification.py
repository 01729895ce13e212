"""Verifies that the day files are as they were written: every chain, line by line."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gateway.audit import entries
from gateway.audit.chains import DayFile, Known, files_by_chain, is_open, strangers
from gateway.events import counted

RUNS, ENDED, CUT_OFF = "runs", "ended", "cut off"
_MARK = b'"kind":"'
# Seconds that a walk rests in a process that serves calls, and after how many lines.
REST, REST_AFTER = 0.005, 500
# Called after each so many lines, with how many there were so far.
Pause = Callable[[int], None]


def rest(lines: int) -> None:
    """Sleeps for a moment, so that a thread beside the event loop leaves it some time."""
    time.sleep(REST)


class BrokenChain(Exception):
    """Raised where a chain is not as it was written; line 0 stands for the file itself."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        super().__init__(f"{path}:{line}: {text}" if line else f"{path}: {text}")


@dataclass(slots=True, kw_only=True)
class ChainVerdict:
    """The result for one chain; `broken` is empty where the chain is whole.

    `state` is RUNS, ENDED, or CUT_OFF where its process may have lost its last moment. `notes` are
    no alarm.
    """

    chain: str
    lines: int = 0
    files: int = 0
    state: str = CUT_OFF
    broken: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Walk:
    """A walk along the files of one chain, line by line, from where the store says that it begins.

    `head` is the last sound line, `ended` whether its process ended with it, and `torn` tells of a
    cut line behind it. `verdict` has the sums so far. `pause` is called now and then; what it
    raises ends the walk.
    """

    folder: Path
    known: Known
    secrets: Sequence[entries.AuditSecret]
    pause: Pause | None = None
    head: entries.ChainHead = field(init=False)
    ended: bool = False
    torn: str = ""
    verdict: ChainVerdict = field(init=False)
    _secret: entries.AuditSecret | None = None
    _first: entries.ChainHead | None = None

    def __post_init__(self) -> None:
        self.head = self.known.base
        self.verdict = ChainVerdict(chain=self.known.id)

    def follow(self, files: Sequence[DayFile], *, whole: bool = True) -> None:
        """Walks along the files, to the end of a `whole` chain. Raises BrokenChain and OSError."""
        known, place = self.known, files[-1].path if files else self.folder
        if not known.is_sealed(self.secrets):
            text = "the store says that old days were dropped, and the audit's key did not say so"
            raise BrokenChain(self.folder, 0, f"chain {known.id}: {text}")
        for file in files:
            self._file(file)
        if whole and self.head.seq < known.head.seq:
            lines = counted(known.head.seq, "line")
            text = f"the store recorded {lines}, the files end with {self.head.seq}"
            raise BrokenChain(place, 0, f"chain {known.id}: {text}")
        if whole and known.ended and not self.ended and self.head != known.base:
            raise BrokenChain(place, 0, "the last line of its process is missing")

    def follow_on(self, files: Sequence[DayFile]) -> None:
        """Walks beyond the recorded head, from the file that holds or follows it.

        Where the file holds the head its first line is believed, as it must lead to the very line
        that the store recorded. Raises BrokenChain and OSError.
        """
        recorded = self.known.head
        for at in range(len(files) - 1, -1, -1):
            with files[at].path.open("rb") as lines:
                first = head_of(lines.readline())
            if first is not None and first.seq <= recorded.seq + 1:
                self.head = recorded
                if first.seq <= recorded.seq:
                    self.head, self._first = entries.ChainHead(first.seq - 1), first
                for file in files[at:]:
                    self._file(file)
                return

    def _file(self, file: DayFile) -> None:
        if self.known.dropped is not None and file.day <= self.known.dropped:
            self.verdict.notes.append(f"{file.path}: is old, and will be dropped")
            return
        self.verdict.files += 1
        if self.torn:
            text = f"a file that follows a line that was cut off: {self.torn}"
            raise BrokenChain(file.path, 0, text)
        number = 0
        with file.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                self._line(file, number, line)
                if self.pause is not None and number % REST_AFTER == 0:
                    self.pause(self.verdict.lines)
        if not number:
            self.verdict.notes.append(f"{file.path}: is empty")

    def _line(self, file: DayFile, number: int, line: bytes) -> None:
        if self.ended:
            raise BrokenChain(file.path, number, "comes after the last line of its process")
        if not line.endswith(b"\n") and self._is_torn(line):
            self.torn = f"{file.path}:{number}: the last line was cut off"
            return
        mark = entries.read_line(line) if number == 1 or _MARK in line[:64] else None
        if mark is not None and mark.kind == entries.BEGIN:
            self._begin(file, number, mark)
        elif number == 1:
            raise BrokenChain(file.path, 1, "the line that begins the file is missing")
        head, self._first = self._first, None
        if head is None and self._secret is not None:
            head = entries.unseal(line, self.head, self._secret)
        if head is None:
            expected = self.head.seq + 1
            is_there = line.startswith(b'{"seq":%d,' % expected)
            why = "is not as it was written" if is_there else "is missing here"
            raise BrokenChain(file.path, number, f"line {expected} of its chain {why}")
        if head.seq == self.known.head.seq and head.mac != self.known.head.mac:
            raise BrokenChain(file.path, number, "is another line than the store recorded")
        self.head = head
        self.verdict.lines += 1
        self.ended = mark is not None and mark.kind == entries.END

    def _is_torn(self, line: bytes) -> bool:
        """Returns whether a kill may have cut the line: it begins right and was not recorded."""
        begin = b'{"seq":%d,' % (self.head.seq + 1)
        unknown = self.head.seq >= self.known.head.seq
        return unknown and (begin.startswith(line[: len(begin)]) or not line.strip(b"\0"))

    def _begin(self, file: DayFile, number: int, mark: entries.AuditLine) -> None:
        """Takes the key that seals from here on; raises BrokenChain where that may not be."""
        sealed, ids = f"is sealed with the key {mark.key}", [secret.id for secret in self.secrets]
        if mark.key not in ids:
            raise BrokenChain(file.path, number, f"{sealed}, which is not here")
        secret = self.secrets[ids.index(mark.key)]
        if self._secret is not None and ids.index(mark.key) > ids.index(self._secret.id):
            raise BrokenChain(file.path, number, f"{sealed}, which is older")
        if not is_begin_of(file, mark):
            raise BrokenChain(file.path, number, "begins the file of another day or chain")
        self._secret = secret


def head_of(line: bytes) -> entries.ChainHead | None:
    """Returns the number and the mac of a whole line, unverified; None where it is no line."""
    read = entries.read_line(line) if line.endswith(b"\n") else None
    with suppress(ValueError):
        return entries.ChainHead(read.seq, bytes.fromhex(read.mac)) if read and read.mac else None
    return None


def is_begin_of(file: DayFile, mark: entries.AuditLine) -> bool:
    """Returns whether the mark begins the file of that day and chain."""
    return (mark.kind, mark.chain, mark.day) == (entries.BEGIN, file.chain, str(file.day))


def verify(
    folder: Path,
    before: Collection[str],
    known: Sequence[Known],
    secrets: Sequence[entries.AuditSecret],
    pause: Pause | None = None,
) -> Iterator[ChainVerdict]:
    """Yields the verdict on each chain that the folder or the store has.

    Processes may begin and write meanwhile: `before` are the chains that the folder had before
    `known` was read. `pause` is called now and then.
    """
    files = files_by_chain(folder)
    for chain in known:
        yield _verdict(Walk(folder, chain, secrets, pause), files.pop(chain.id, []))
    for name, own in files.items():
        if name in before:
            broken = f"{own[0].path}: the store knows no chain of that name"
            yield ChainVerdict(chain=name, broken=broken)
    for path in strangers(folder):
        yield ChainVerdict(chain="", broken=f"{path}: no file of the audit has such a name")


def _verdict(walk: Walk, files: Sequence[DayFile]) -> ChainVerdict:
    verdict, recorded = walk.verdict, walk.known.head.seq
    try:
        walk.follow(files)
    except BrokenChain as error:
        verdict.broken = str(error)
    except OSError as error:
        verdict.broken = f"{error.filename}: cannot be read: {(error.strerror or '').lower()}"
    if walk.ended:
        verdict.state = ENDED
    elif files and is_open(files[-1].path):
        verdict.state = RUNS
    if verdict.state != RUNS and walk.head.seq > recorded:
        beyond = counted(walk.head.seq - recorded, "line")
        text = f"the files go {beyond} beyond what the store recorded"
        verdict.notes.append(f"{files[-1].path}: {text}")
    if walk.torn:
        verdict.notes.append(walk.torn)
    return verdict


def is_foreign(known: Sequence[Known], place: str | None, *, shared: bool) -> bool:
    """Returns whether the store knows no chain of the folder, so that nothing can be verified."""
    return shared and place is not None and all(chain.place != place for chain in known)


def elsewhere(known: Sequence[Known], place: str | None, *, shared: bool) -> list[Known]:
    """Returns the chains of other machines' folders, which are verified there."""
    return [chain for chain in known if shared and place is not None and chain.place != place]
