"""When an attempt that nobody works on any more can come to nothing: sent, and not yet made."""

from collections.abc import Callable
from pathlib import Path

from adapters.base import Adapter
from gateway.booking.row import Row
from gateway.booking.since import Seen


class Landings:
    """The time that attempts still have; `me` is this process, `lands` the seconds of the longest.

    `file` is where the process that reconciles the ledger keeps since when it has seen them.
    """

    def __init__(
        self, me: str, lands: float, clock: Callable[[], float], file: Path | None = None
    ) -> None:
        self._me = me
        self._lands = lands
        self._seen = Seen(clock, file)

    def left(self, adapter: Adapter, row: Row) -> float:
        """Seconds in which it may still be made, where a look-up finds nothing; 0 for none.

        Of its own calls an adapter knows it; of another process's only one that locks. Else it is
        counted from when the attempt was first seen left behind: when it was sent only another
        clock says.
        """
        if adapter.excludes or row.sender == self._me:
            return 0.0
        return max(0.0, self._lands + adapter.settle - self._seen.seconds(row.sending))
