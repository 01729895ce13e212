"""Is there room: what would be too much at once is turned away before it is counted."""

from gateway.contract.errors import Unavailable
from gateway.pipeline.call import Call

RETRY_AFTER = 1  # seconds


class Gate:
    """How many calls may be under way at once, and how many of one key.

    Whoever is let in stands in `inside` until it leaves. While there are fewer than `free`, nobody
    need be asked whose they are.
    """

    __slots__ = ("_most", "_most_of_one", "free", "inside")

    def __init__(self, most: int, most_of_one: int) -> None:
        self.inside: set[Call] = set()
        self.free = min(most, most_of_one)
        self._most = most
        self._most_of_one = most_of_one

    def check(self, key_id: str) -> None:
        """Unavailable where there is no room for one more call of that key."""
        own = sum(call.key is not None and call.key.id == key_id for call in self.inside)
        if own >= self._most_of_one or len(self.inside) >= self._most:
            raise Unavailable(RETRY_AFTER)
