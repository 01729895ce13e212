"""Who has seen a record, as an owner may ask: partners, and administrators in the panel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from gateway.admin.visit import KEYS, Visit
from gateway.administrators.log import Looks
from gateway.audit.chains import audit_folder
from gateway.audit.index import record_id
from gateway.audit.questions import Days, IndexState, brought_up
from gateway.contract.resources import GOVERNED
from gateway.inquiries.reading import Fields, Reader, can_be, readers_of
from gateway.policy.masks import Mask, read_mask

# Seconds that the index is brought up for: the gateway does it each minute anyhow.
WITHIN = 0.25
MOST_KEYS = 200
_RESOURCES = {each.name: each for each in GOVERNED}


@dataclass(frozen=True, slots=True)
class Shown:
    """The fields that were shown whole, and those that were masked, with their masks."""

    whole: Sequence[str]
    masked: Mapping[str, Mask]


async def who(visit: Visit) -> web.Response:
    """The keys, or a form that asks for a record."""
    resource = _RESOURCES.get(visit.asked("resource"))
    record = record_id(visit.asked("id")[:200])
    if resource is None or not record:
        return _page(visit, record=record)
    folder = audit_folder(visit.parts.settings)
    try:
        state = await brought_up(visit.parts.store, folder, lambda size: None, WITHIN)
    except OSError as error:
        unread = f"{error.filename or folder}: {(error.strerror or str(error)).lower()}"
        return _page(visit, record=record, unread=unread)
    readers: Sequence[Reader] = []
    looks = await visit.administration.log.looks(resource.name, record)
    is_known = True
    if state.lost is None:
        names = await visit.request.app[KEYS].names()
        readers = await readers_of(visit.parts.store, resource, record, Days(), names)
        is_known = bool(readers or looks) or await can_be(visit.parts.store, resource, record)
    return _page(visit, record=record, state=state, readers=readers, looks=looks, is_known=is_known)


def _page(
    visit: Visit,
    *,
    record: str,
    readers: Sequence[Reader] = (),
    looks: Sequence[Looks] = (),
    state: IndexState | None = None,
    is_known: bool = True,
    unread: str = "",
) -> web.Response:
    gaps = state.gaps if state else ()
    return visit.page(
        "audit/who.html",
        resources=list(_RESOURCES),
        resource=visit.asked("resource"),
        record=record,
        readers=readers[:MOST_KEYS],
        all=len(readers),
        most=MOST_KEYS,
        looks=looks,
        state=state,
        here=[_until(each.until) for each in gaps if each.here],
        elsewhere=[(each.host, _until(each.until)) for each in gaps if not each.here],
        is_known=is_known,
        unread=unread,
        shown=_shown,
        fields=len(_RESOURCES[visit.asked("resource")].paths) if readers else 0,
    )


def _shown(fields: Fields) -> Shown:
    """The same, parted."""
    whole = [path for path, sight in fields.items() if sight == "whole"]
    read = {path: read_mask(sight) for path, sight in fields.items()}
    return Shown(whole, {path: mask for path, mask in read.items() if isinstance(mask, Mask)})


def _until(text: str) -> datetime:
    return datetime.fromisoformat(text)
