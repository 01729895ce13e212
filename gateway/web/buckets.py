"""How often an address may call without a key that counts: a bucket of tokens for each."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from gateway.web.doorman import networks_of

# Tokens that come in a second, and how many there may be.
RATE, BURST = 100.0, 200.0
# Seconds that a call waits at most for its token.
LONGEST = 1.0
# So many addresses are remembered; the one that has called least lately is forgotten.
MOST = 10_000


class Buckets:
    """The buckets of one process; of IPv6 a network of 64 bits is one address.

    `clock` gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # when the bucket of each will be full again; one that is full is as good as unknown
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, address: str) -> float:
        """Take a token; the seconds until it is there, LONGEST at most."""
        now, whose = self._clock(), next(iter(networks_of(address)))
        full_at = max(now, self._full_at.pop(whose, now)) + 1 / RATE
        latest = now + BURST / RATE + LONGEST
        self._full_at[whose] = min(full_at, latest)
        self._forget(now)
        return max(0.0, self._full_at[whose] - now - BURST / RATE)

    def _forget(self, now: float) -> None:
        """Two that need not be remembered, or the oldest where there are too many."""
        for _ in range(2):
            oldest = next(iter(self._full_at))
            if self._full_at[oldest] > now and len(self._full_at) <= MOST:
                return
            del self._full_at[oldest]
