"""How lines of the audit are written a piece at a time."""

from collections.abc import Iterator, Sequence

# Bytes that are written at once, and with how many a disk that took nothing is tried.
PIECE, FIRST = 1 << 20, 1 << 15


def pieces(lines: Sequence[bytes], first: int) -> Iterator[Sequence[bytes]]:
    """All in their order: `first` bytes at most, then PIECE each; at least one, if without lines.

    A line that is longer is a piece of its own. Their numbers and seals do not count.
    """
    begin, size, most = 0, 0, first
    for at, line in enumerate(lines):
        size += len(line)
        if size > most and at > begin:
            yield lines[begin:at]
            begin, size, most = at, len(line), PIECE
    yield lines[begin:]
