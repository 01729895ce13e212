"""Goes along the files of one chain, line by line, from where the store says that it begins."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from gateway.audit.chain import Head, unseal
from gateway.audit.chains import Known
from gateway.audit.dropped import is_sealed
from gateway.audit.entries import BEGIN, END, Line
from gateway.audit.files import DayFile
from gateway.audit.secrets import Secret

_MARK = b'"kind":"'
# Beside calls that are served a walk rests so many seconds after so many lines.
REST, REST_AFTER = 0.005, 500
# Called after each so many lines, with how many there were so far.
Pause = Callable[[int], None]


def rest(lines: int) -> None:
    """For a thread beside the event loop: some time is left to others."""
    time.sleep(REST)


def in_lines(count: int) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} line{'' if count == 1 else 's'}"


class Broken(Exception):
    """Where a chain is not as it was written, and what is wrong; line 0 is the file itself."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        super().__init__(f"{path}:{line}: {text}" if line else f"{path}: {text}")


class Walk:
    """What it knows so far is about the line that comes next.

    `head` is the last line that is as it was written, `ended` whether its process ended with it;
    `torn` tells of one behind it that was cut off. `notes` are no alarm. `pause` is called now and
    then: what it raises ends the walk.
    """

    def __init__(
        self, folder: Path, known: Known, secrets: Sequence[Secret], pause: Pause | None = None
    ) -> None:
        self.head = known.base
        self.ended = False
        self.torn = ""
        self.lines = 0
        self.files = 0
        self.notes: list[str] = []
        self._known = known
        self._folder = folder
        self._pause = pause
        self._order = {each.id: number for number, each in enumerate(secrets)}
        self._secrets: Mapping[str, Secret] = {each.id: each for each in secrets}
        self._secret: Secret | None = None
        self._first: Head | None = None

    def join(self, first: Head | None) -> None:
        """Begin in the midst, behind the recorded head; or with a line before it, as which it is.

        That line is believed: what follows must lead to the very line that the store recorded.
        """
        self.head, self._first = self._known.head, first
        if first is not None:
            self.head = Head(first.seq - 1)

    def check_base(self) -> None:
        """Broken where days are gone that the key does not know of."""
        if not is_sealed(self._known, self._secrets.values()):
            raise Broken(
                self._folder, 0, f"chain {self._known.id}: the store says that old days were"
                " dropped, and the audit's key did not say so",
            )  # fmt: skip

    def remaining(self, files: Sequence[DayFile]) -> Iterator[DayFile]:
        """Those whose days were not dropped."""
        dropped = self._known.dropped
        for each in files:
            if dropped is not None and each.day <= dropped:
                self.notes.append(f"{each.path}: is old, and will be dropped")
            else:
                yield each

    def file(self, file: DayFile) -> None:
        """Along the next one. Broken; OSError."""
        self.files += 1
        if self.torn:
            raise Broken(file.path, 0, f"a file that follows a line that was cut off: {self.torn}")
        with file.path.open("rb") as lines:
            number = 0
            for number, line in enumerate(lines, 1):
                self._line(file, number, line)
                if self._pause is not None and number % REST_AFTER == 0:
                    self._pause(self.lines)
        if not number:
            self.notes.append(f"{file.path}: is empty")

    def _line(self, file: DayFile, number: int, line: bytes) -> None:
        if self.ended:
            raise Broken(file.path, number, "comes after the last line of its process")
        if not line.endswith(b"\n") and self._is_torn(line):
            self.torn = f"{file.path}:{number}: the last line was cut off"
            return
        mark = self._mark(line) if number == 1 or _MARK in line[:64] else None
        if mark is not None and mark.kind == BEGIN:
            self._begin(file, number, mark)
        elif number == 1:
            raise Broken(file.path, 1, "the line that begins the file is missing")
        head, self._first = self._first or self._unsealed(line), None
        if head is None:
            raise Broken(file.path, number, self._why(line))
        if head.seq == self._known.head.seq and head.mac != self._known.head.mac:
            raise Broken(file.path, number, "is another line than the store recorded")
        self.head, self.lines = head, self.lines + 1
        self.ended = mark is not None and mark.kind == END

    def _unsealed(self, line: bytes) -> Head | None:
        return unseal(line, self.head, self._secret) if self._secret else None

    def _is_torn(self, line: bytes) -> bool:
        """Whether a kill may have left it: it is begun rightly, and the store knows none of it."""
        begin = b'{"seq":%d,' % (self.head.seq + 1)
        unknown = self.head.seq >= self._known.head.seq
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
        expected = self.head.seq + 1
        if line.startswith(b'{"seq":%d,' % expected):
            return f"line {expected} of its chain is not as it was written"
        return f"line {expected} of its chain is missing here"

    def check_head(self, files: Sequence[DayFile]) -> None:
        """Broken where all files do not reach as far as the store knows."""
        recorded = self._known.head
        if self.head.seq < recorded.seq:
            place = files[-1].path if files else self._folder
            text = (
                f"the store recorded {in_lines(recorded.seq)}, the files end with {self.head.seq}"
            )
            raise Broken(place, 0, f"chain {self._known.id}: {text}")
        if self._known.ended and not self.ended and self.head != self._known.base:
            raise Broken(files[-1].path, 0, "the last line of its process is missing")


def begins_rightly(file: DayFile) -> bool:
    """Whether its first line names its day and chain, unverified; an empty one says nothing."""
    with file.path.open("rb") as lines:
        first = lines.readline()
    if not first.endswith(b"\n"):
        return not first
    try:
        mark = msgspec.json.decode(first, type=Line)
    except msgspec.MsgspecError:
        return False
    return (mark.kind, mark.chain, mark.day) == (BEGIN, file.chain, str(file.day))
