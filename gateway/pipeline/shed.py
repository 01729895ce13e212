"""Is there room: what would be too much at once is turned away before it is counted."""

from gateway.contract.errors import Unavailable

RETRY_AFTER = 1  # seconds


class Gate:
    """Lets so many calls in at once, and so many of one key; Unavailable for one more."""

    __slots__ = ("_inside", "_most", "_most_of_one", "_of")

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._inside = 0
        self._of: dict[str, int] = {}

    def enter(self, key_id: str) -> None:
        """Let a call in; whoever was let in has to leave."""
        of_one = self._of.get(key_id, 0)
        if self._inside >= self._most or of_one >= self._most_of_one:
            raise Unavailable(RETRY_AFTER)
        self._inside += 1
        self._of[key_id] = of_one + 1

    def leave(self, key_id: str) -> None:
        """The call has ended."""
        self._inside -= 1
        left = self._of[key_id] - 1
        if left:
            self._of[key_id] = left
        else:
            del self._of[key_id]
