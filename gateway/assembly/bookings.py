"""The ledger, and what becomes of bookings once they are in it."""

from pathlib import Path

from adapters.base import Adapter
from gateway.assembly.kit import Kit
from gateway.booking.claims import Patience
from gateway.booking.ledger import Ledger
from gateway.booking.reconcile import LedgerStatus, Reconciler, Watch
from gateway.booking.takeover import Owners
from gateway.state import RUN
from gateway.store import Store

# Seconds that a booking may still be at work after the time that it has.
LANDS_WITHIN = 5.0


async def open_owners(kit: Kit, store: Store) -> Owners:
    """This process among all that book."""
    owners = kit.closing(Owners(store, kit.settings.state))
    await owners.start()
    return owners


def open_ledger(kit: Kit, store: Store, owners: Owners) -> Ledger:
    """The ledger of bookings."""
    patience, wait = Patience(lands=_lands(kit)), kit.settings.booking_wait
    ledger = Ledger(store, owners, kit.bookings, wait=wait, patience=patience, seen=_seen(kit))
    kit.closing(ledger).start(kit.now)
    kit.metrics.ask("gateway_ledger_unwritten", lambda: ledger.waiting)
    return ledger


async def look_after(kit: Kit, store: Store, adapter: Adapter, owners: Owners) -> None:
    """What earlier processes left is looked up, and what the desk writes over is noticed.

    One process of a machine does that.
    """
    lands, seen = _lands(kit), _seen(kit)
    reconciler = Reconciler(store, adapter, owners, kit.bookings, lands=lands, file=seen)
    await kit.closing(reconciler).begin()
    reconciler.start()
    told = kit.bookings
    watch = Watch(store, adapter, told.overwritten, told.unreadable, told.watch_failed)
    kit.metrics.ask("gateway_bookings_overwritten", lambda: watch.overwritten)
    kit.closing(watch).start(kit.now)


def standing(kit: Kit, store: Store) -> LedgerStatus:
    """What the ledger holds, as the figures tell it."""
    found = LedgerStatus(store, kit.now)
    kit.metrics.ask_all("gateway_ledger_bookings", found.states)
    kit.metrics.ask("gateway_ledger_oldest_unknown_seconds", found.oldest_unknown)
    return found


def _seen(kit: Kit) -> Path:
    """Where it is kept since when outcomes are not known."""
    return kit.settings.state / RUN / "unknown.json"


def _lands(kit: Kit) -> float:
    """Seconds after which an attempt that nobody waits for any more has come to its end."""
    return kit.settings.backend.booking_timeout + LANDS_WITHIN
