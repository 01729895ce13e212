"""Whether the machine's clock can be right: before anybody is answered by it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from gateway.contract.fields import write_instant
from gateway.keys.store import KeyStore
from gateway.settings import StartRefused
from gateway.store import Store

# This program is not older, and nobody runs it that much later.
FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
# What a clock may be behind the latest time that the store has seen: it catches up by itself.
BEHIND = timedelta(days=1)


def check_clock(now: Callable[[], datetime]) -> None:
    """StartRefused where no machine's clock can say that."""
    try:
        moment = now()
    except (ValueError, OverflowError, OSError) as error:
        raise StartRefused(f"the machine's clock is of no use ({error}): set it") from error
    if not FIRST <= moment < LAST:
        raise StartRefused(
            f"the machine's clock says {write_instant(moment)}, which is"
            f" {'before this program was made' if moment < FIRST else 'too far ahead'}: set it"
        )


async def check_not_behind(store: Store, now: datetime) -> None:
    """StartRefused where the store has seen times that are far ahead of this one. StoreError."""
    latest = await KeyStore(store).latest_time()
    if latest is not None and latest - now > BEHIND:
        raise StartRefused(
            f"the machine's clock says {write_instant(now)}, and this state has seen"
            f" {write_instant(latest)}: set the clock; or, where it is right and was ahead then,"
            " `clinic-gateway state clock --accept`"
        )
