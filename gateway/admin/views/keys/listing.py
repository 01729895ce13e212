"""All keys, some at a time: searched, sorted, and by state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from gateway.admin.visit import KEYS, Visit
from gateway.inquiries.key_book import Found, Listed, Which
from gateway.keys.store import KeyStore

AT_ONCE = 50
ORDERS = ("name", "newest", "used", "share")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """A key in the table; `used` is how many calls of its limit are used, None where unknown."""

    listed: Listed
    last_used: datetime | None
    used: int | None

    @property
    def share(self) -> float:
        """Of its limit."""
        return min(1.0, (self.used or 0) / max(1, self.listed.key.limit))


async def listing(visit: Visit) -> web.Response:
    """The table; where a page that is open asks, the table alone."""
    wanted, order = visit.asked("q")[:100], visit.asked("order")
    which = Which(visit.asked("which")) if visit.asked("which") in set(Which) else Which.ACTIVE
    order = order if order in ORDERS else ORDERS[0]
    found = await visit.request.app[KEYS].find(wanted, which, visit.parts.now())
    rows = await _sorted(visit, found, order)
    pages = max(1, -(-len(rows) // AT_ONCE))
    number = min(max(1, _number(visit.asked("page"))), pages)
    shown = rows[(number - 1) * AT_ONCE : number * AT_ONCE]
    return visit.page(
        "keys/table.html" if visit.is_part else "keys/list.html",
        rows=await _completed(visit, shown, order),
        found=found,
        which=which,
        states=list(Which),
        order=order,
        orders=ORDERS,
        wanted=wanted,
        number=number,
        pages=pages,
        now=found.at,
    )


async def _sorted(visit: Visit, found: Found, order: str) -> list[Row]:
    keys = found.keys
    if order == "newest":
        ordered = sorted(keys, key=lambda each: each.key.created_at, reverse=True)
        return [Row(each, None, None) for each in ordered]
    if order == "used":
        used = await _last_used(visit, keys)
        rows = [Row(each, used.get(each.key.id), None) for each in keys]
        return sorted(rows, key=lambda row: row.last_used or _LONG_AGO, reverse=True)
    if order == "share":
        calls = await calls_used(visit, keys)
        rows = [Row(each, None, calls.get(each.key.id)) for each in keys]
        return sorted(rows, key=lambda row: row.share, reverse=True)
    return [Row(each, None, None) for each in sorted(keys, key=_by_name)]


def _by_name(listed: Listed) -> tuple[str, str]:
    return listed.key.name.casefold(), listed.key.id


async def _completed(visit: Visit, rows: Sequence[Row], order: str) -> list[Row]:
    """With all that the table shows, asked of the keys on this page alone."""
    keys = [row.listed for row in rows]
    used = await _last_used(visit, keys)
    calls = await calls_used(visit, keys)
    return [Row(each, used.get(each.key.id), calls.get(each.key.id)) for each in keys]


async def calls_used(visit: Visit, keys: Sequence[Listed]) -> Mapping[str, int]:
    """What each has used of its hour; of none is anything known where what counts is down."""
    ids = [each.key.id for each in keys]
    found = await visit.parts.used(ids)
    if found is None:
        return {}
    return {key_id: found[key_id].calls if key_id in found else 0 for key_id in ids}


async def _last_used(visit: Visit, keys: Sequence[Listed]) -> Mapping[str, Any]:
    return await KeyStore(visit.parts.store).last_used([each.key.id for each in keys])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 1
