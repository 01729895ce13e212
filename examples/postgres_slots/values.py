"""How this practice system writes its values: UTC without a zone, seconds, ten decimals, UUIDs."""

from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from uuid import UUID
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Helsinki")
SERVER_ZONE = "Asia/Kolkata"
FORMER_VET, NURSE = 50, 51
SLOT_ROOM = 100  # the room whose free times are rows


def utc(moment: datetime) -> datetime:
    """What the clinic's wall clock shows, as UTC without a zone."""
    return moment.replace(tzinfo=ZONE).astimezone(UTC).replace(tzinfo=None)


def epoch(moment: datetime) -> int:
    """The same as seconds since 1970."""
    return int(moment.replace(tzinfo=ZONE).timestamp())


def euros(cents: int) -> Decimal:
    """Cents as a number with ten decimals."""
    return Decimal(cents).scaleb(-2).quantize(Decimal("1.0000000000"))


def patient_id(number: int) -> UUID:
    """The UUID that patient `number` was given."""
    bits = Random(f"patient/{number}").getrandbits(128)
    return UUID(int=bits, version=4)


def room_of(vet: int) -> int:
    """The room in which a vet works most."""
    return vet


def slot_minutes(room: int) -> int:
    """What one slot of a room lasts."""
    return 15 if room % 2 or room == SLOT_ROOM else 5
