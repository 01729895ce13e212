"""Leaves out of a YAML text what cannot be read, so that the rest of it can be checked as well."""

from adapters.documents.yaml_errors import Fault

# Mistakes that are told at once; whoever has made more of them mends these first.
MOST_FAULTS = 20


class MendedText:
    """The text of a file, in which lines that cannot be read are blank.

    With a line goes what is indented under it. Where the reader stops again beside what was left
    out, that was too little: the lines around it go too, and no second mistake is told. `left_out`
    are the lines and columns, from 0, at which something was left out.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.faults: list[Fault] = []
        self.left_out: list[tuple[int, int]] = []
        self._first = self._last = -2

    def leaves_out(self, fault: Fault) -> bool:
        """Leaves out the line of a fault; returns False where nothing more can be left out."""
        lines = self.content.split(b"\n")
        line = min(fault[0], len(lines) - 1)
        if self._first - 1 <= line <= self._last + 1:
            line = self._first
            column = self.left_out.pop()[1]
            while line >= 0 and (_column(lines[line]) is None or _column(lines[line]) >= column):  # type: ignore[operator]
                line -= 1
        else:
            while line > 0 and _column(lines[line]) is None:
                line -= 1
            self.faults.append(fault)
        is_wide = self.content.startswith((b"\xff\xfe", b"\xfe\xff"))  # two bytes a letter
        if is_wide or line < 0 or len(self.faults) > MOST_FAULTS or _column(lines[line]) is None:
            return False
        self._blank(lines, line)
        return True

    def _blank(self, lines: list[bytes], first: int) -> None:
        column, last = _column(lines[first]) or 0, first
        for number in range(first + 1, len(lines)):
            own = _column(lines[number])
            if own is not None and own <= column:
                break
            last = number
        for number in range(first, last + 1):
            lines[number] = b""
        self.content = b"\n".join(lines)
        self.left_out.append((first, column))
        self._first, self._last = first, last


def _column(line: bytes) -> int | None:
    """Returns where the line's text begins; None for a line without any."""
    bare = line.lstrip(b" \t\r")
    return None if not bare or bare.startswith(b"#") else len(line) - len(bare)
