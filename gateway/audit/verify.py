"""Whether the day files are as they were written: every chain, line by line, against the store."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import msgspec

from gateway.audit.chain import unseal
from gateway.audit.chains import Known
from gateway.audit.entries import BEGIN, END, Line
from gateway.audit.files import DayFile, day_files, is_open, strangers
from gateway.audit.retention import is_sealed
from gateway.audit.secrets import Secret

RUNS, ENDED, CUT_OFF = "runs", "ended", "cut off"
_MARK = b'"kind":"'


class Broken(Exception):
    """Where a chain is not as it was written, and what is wrong; line 0 is the file itself."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        super().__init__(f"{path}:{line}: {text}" if line else f"{path}: {text}")


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
    folder: Path, before: Collection[str], known: Sequence[Known], secrets: Sequence[Secret]
) -> Iterator[Verdict]:
    """Each chain that the folder or the store has.

    Processes may begin and write meanwhile: `before` are the chains that the folder had before
    `known` was read, and that was before this call.
    """
    files = sorted(day_files(folder), key=lambda each: (each.chain, each.day))
    own = {chain: list(group) for chain, group in groupby(files, key=lambda each: each.chain)}
    for each in known:
        yield _Walk(folder, each, secrets).verdict(own.pop(each.id, []))
    for chain, group in own.items():
        if chain not in before:
            continue
        place = group[0].path
        yield Verdict(chain=chain, broken=f"{place}: the store knows no chain of that name")
    for path in strangers(folder):
        yield Verdict(chain="", broken=f"{path}: no file of the audit has such a name")


class _Walk:
    """Goes along one chain; what it knows so far is about the line that comes next."""

    def __init__(self, folder: Path, known: Known, secrets: Sequence[Secret]) -> None:
        self._known = known
        self._folder = folder
        self._order = {each.id: number for number, each in enumerate(secrets)}
        self._secrets: Mapping[str, Secret] = {each.id: each for each in secrets}
        self._secret: Secret | None = None
        self._head = known.base
        self._ended = False
        self._torn = ""
        self._verdict = Verdict(chain=known.id)

    def verdict(self, files: Sequence[DayFile]) -> Verdict:
        """All that is to be said."""
        found = self._verdict
        try:
            self._check_base()
            for each in self._remaining(files):
                self._file(each)
            self._check_head(files)
        except Broken as error:
            found.broken = str(error)
        except OSError as error:
            found.broken = f"{error.filename}: cannot be read: {(error.strerror or '').lower()}"
        if self._ended:
            found.state = ENDED
        elif files and is_open(files[-1].path):
            found.state = RUNS
        if self._torn:
            found.notes.append(self._torn)
        return found

    def _check_base(self) -> None:
        if not is_sealed(self._known, self._secrets.values()):
            raise Broken(
                self._folder, 0, f"chain {self._known.id}: the store says that old days were"
                " dropped, and the audit's key did not say so",
            )  # fmt: skip

    def _remaining(self, files: Sequence[DayFile]) -> Iterator[DayFile]:
        dropped = self._known.dropped
        for each in files:
            if dropped is not None and each.day <= dropped:
                self._verdict.notes.append(f"{each.path}: is old, and will be dropped")
            else:
                yield each

    def _file(self, file: DayFile) -> None:
        self._verdict.files += 1
        if self._torn:
            raise Broken(file.path, 0, f"a file that follows a line that was cut off: {self._torn}")
        with file.path.open("rb") as lines:
            number = 0
            for number, line in enumerate(lines, 1):
                self._line(file, number, line)
        if not number:
            self._verdict.notes.append(f"{file.path}: is empty")

    def _line(self, file: DayFile, number: int, line: bytes) -> None:
        if self._ended:
            raise Broken(file.path, number, "comes after the last line of its process")
        if not line.endswith(b"\n") and self._is_torn(line):
            self._torn = f"{file.path}:{number}: the last line was cut off"
            return
        mark = self._mark(line) if number == 1 or _MARK in line[:64] else None
        if mark is not None and mark.kind == BEGIN:
            self._begin(file, number, mark)
        elif number == 1:
            raise Broken(file.path, 1, "the line that begins the file is missing")
        head = unseal(line, self._head, self._secret) if self._secret else None
        if head is None:
            raise Broken(file.path, number, self._why(line))
        if head.seq == self._known.head.seq and head.mac != self._known.head.mac:
            raise Broken(file.path, number, "is another line than the store recorded")
        self._head, self._verdict.lines = head, self._verdict.lines + 1
        self._ended = mark is not None and mark.kind == END

    def _is_torn(self, line: bytes) -> bool:
        """Whether a kill may have left it: it is begun rightly, and the store knows none of it."""
        begin = b'{"seq":%d,' % (self._head.seq + 1)
        unknown = self._head.seq >= self._known.head.seq
        return unknown and (begin.startswith(line[: len(begin)]) or not line.strip(b"\0"))

    def _mark(self, line: bytes) -> Line | None:
        try:
            return msgspec.json.decode(line, type=Line)
        except msgspec.MsgspecError:
            return None

    def _begin(self, file: DayFile, number: int, mark: Line) -> None:
        """From here on that key seals; an older one than before never does."""
        secret = self._secrets.get(mark.key)
        if secret is None:
            raise Broken(file.path, number, f"is sealed with the key {mark.key}, which is not here")
        if self._secret is not None and self._order[secret.id] > self._order[self._secret.id]:
            raise Broken(file.path, number, f"is sealed with the key {mark.key}, which is older")
        if (mark.chain, mark.day) != (file.chain, str(file.day)):
            raise Broken(file.path, number, "begins the file of another day or chain")
        self._secret = secret

    def _why(self, line: bytes) -> str:
        expected = self._head.seq + 1
        if line.startswith(b'{"seq":%d,' % expected):
            return f"line {expected} of its chain is not as it was written"
        return f"line {expected} of its chain is missing here"

    def _check_head(self, files: Sequence[DayFile]) -> None:
        recorded = self._known.head
        if self._head.seq < recorded.seq:
            place = files[-1].path if files else self._folder
            text = f"the store recorded {recorded.seq} lines, the files end with {self._head.seq}"
            raise Broken(place, 0, f"chain {self._known.id}: {text}")
        if self._known.ended and not self._ended and self._head != self._known.base:
            raise Broken(files[-1].path, 0, "the last line of its process is missing")


def is_foreign(known: Sequence[Known], place: str | None, *, shared: bool) -> bool:
    """Whether the folder's name is none that the store knows: nothing of it could be verified."""
    return shared and place is not None and all(each.place != place for each in known)


def elsewhere(known: Sequence[Known], place: str | None, *, shared: bool) -> list[Known]:
    """Chains of other machines' folders, where machines share the store: verified there."""
    return [each for each in known if shared and place is not None and each.place != place]
