"""What somebody looks for in the audit: as it was written into the form, and as it is searched."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from gateway.admin.visit import KEYS, Visit
from gateway.audit.entries import ANSWERED, BEGUN, FAILED, REFUSED, UNKNOWN
from gateway.audit.index import record_id, uuid_key
from gateway.audit.search import EntryFilter
from gateway.contract.operations import OPERATIONS
from gateway.inquiries.key_book import Which
from gateway.keys.secret import PREFIX, hint

NAMES = ("key", "operation", "record", "outcome", "request", "from", "to")
IDS = tuple(each.id for each in OPERATIONS)
OUTCOMES = (ANSWERED, REFUSED, FAILED, UNKNOWN, BEGUN)
# A text may be the name of so many keys.
MOST_KEYS = 20
_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """`given` are the texts that are not empty; `errors` say what is wrong with one.

    `too_many` is whether more keys have that name than are searched for.
    """

    given: Mapping[str, str]
    errors: Mapping[str, str]
    wanted: EntryFilter
    too_many: bool = False

    def query(self, **more: str) -> str:
        """The same for an address."""
        return urlencode({**self.given, **more})


async def read_filters(visit: Visit, told: Mapping[str, object]) -> Filters:
    """Those of an address or of a form. StoreError."""
    given = {name: text for name in NAMES if (text := str(told.get(name, "")).strip()[:_LONGEST])}
    if given.get("key", "").startswith(PREFIX):
        # somebody may have pasted a whole secret: it is not shown again
        given["key"] = hint(given["key"])
    errors = {
        name: visit.words("audit.unknown_choice")
        for name, choices in (("operation", IDS), ("outcome", OUTCOMES))
        if given.get(name, choices[0]) not in choices
    }
    moments: dict[str, datetime | None] = {}
    for name in ("from", "to"):
        try:
            moments[name] = _moment(given.get(name, ""), visit.parts.zone, is_end=name == "to")
        except (ValueError, OverflowError):
            moments[name] = None
            errors[name] = visit.words("audit.bad_time")
    keys, too_many = await _keys(visit, given.get("key", ""))
    if keys == frozenset():
        errors["key"] = visit.words("audit.no_such_key")
    wanted = EntryFilter(
        keys=keys,
        operation=given.get("operation", ""),
        record=record_id(given.get("record", "")),
        outcome=given.get("outcome", ""),
        request=given.get("request", ""),
        since=moments["from"],
        until=moments["to"],
    )
    return Filters(given=given, errors=errors, wanted=wanted, too_many=too_many)


async def _keys(visit: Visit, text: str) -> tuple[frozenset[str] | None, bool]:
    """The ids of the keys that are meant, and whether there are more; None where none is named."""
    if not text:
        return None, False
    book = visit.request.app[KEYS]
    found = [each.key.id for each in (await book.find(text, Which.ALL, visit.parts.now())).keys]
    if not found and uuid_key(text):
        # of a key that is gone the audit tells nevertheless
        return frozenset({record_id(text)}), False
    return frozenset(found[:MOST_KEYS]), len(found) > MOST_KEYS


def _moment(text: str, zone: ZoneInfo, *, is_end: bool) -> datetime | None:
    """A time on the clinic's wall clock; where that shows it twice, all of both.

    Without seconds an end is that of the minute. ValueError, OverflowError.
    """
    if not text:
        return None
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        read = read.replace(tzinfo=zone, fold=int(is_end))
    if is_end and len(text) <= len("2026-11-22T10:04"):
        read = read.replace(second=59, microsecond=999_999)
    return read.astimezone(UTC)
