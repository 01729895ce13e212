"""Is there room: what would be too much at once is turned away before it is counted."""

from gateway.contract.errors import Unavailable

RETRY_AFTER = 1  # seconds


class Gate:
    """Lets so many calls in at once; Unavailable for one more."""

    __slots__ = ("_inside", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0

    def __enter__(self) -> None:
        if self._inside >= self._most:
            raise Unavailable(RETRY_AFTER)
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
