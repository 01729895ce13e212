"""Who has seen a record, as an owner may ask: partners, and administrators in the panel."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from aiohttp import web

from gateway.admin.views.verification import unreadable
from gateway.admin.visit import Visit
from gateway.audit.chains import audit_folder
from gateway.audit.index import record_id
from gateway.audit.questions import Days, brought_up
from gateway.contract.resources import GOVERNED
from gateway.inquiries.audit import Fields, RecordReader, can_be, readers_of
from gateway.policy.masks import Mask, read_mask

# Seconds that the index is brought up for: the gateway does it each minute anyhow.
WITHIN = 0.25
MOST_KEYS = 200
_RESOURCES = {each.name: each for each in GOVERNED}


async def record_readers(visit: Visit) -> web.Response:
    """The keys, or a form that asks for a record."""
    resource = _RESOURCES.get(visit.asked("resource"))
    record = record_id(visit.asked("id")[:200])
    if resource is None or not record:
        return _page(visit, record=record)
    folder = audit_folder(visit.context.settings)
    try:
        state = await brought_up(visit.store, folder, lambda size: None, WITHIN)
    except OSError as error:
        return _page(visit, record=record, unread=unreadable(folder, error))
    readers: Sequence[RecordReader] = []
    looks, is_known = await visit.administration.log.looks(resource.name, record), True
    if state.lost is None:
        names = await visit.keys.names()
        readers = await readers_of(visit.store, resource, record, Days(), names)
        is_known = bool(readers or looks) or await can_be(visit.store, resource, record)
    gaps = [(gap, datetime.fromisoformat(gap.until)) for gap in state.gaps]
    return _page(
        visit,
        record=record,
        readers=readers[:MOST_KEYS],
        all=len(readers),
        looks=looks,
        state=state,
        here=[until for gap, until in gaps if gap.here],
        elsewhere=[(gap.host, until) for gap, until in gaps if not gap.here],
        is_known=is_known,
        fields=len(resource.paths),
    )


def _page(visit: Visit, **context: Any) -> web.Response:
    known = {"unread": "", "state": None}
    return visit.page(
        "audit/who.html",
        resources=list(_RESOURCES),
        resource=visit.asked("resource"),
        most=MOST_KEYS,
        shown=_shown,
        **known | context,
    )


def _shown(fields: Fields) -> dict[str, Any]:
    """Returns the fields that were shown whole, and those that were masked, with their masks."""
    masks = {path: read_mask(sight) for path, sight in fields.items()}
    return {
        "whole": [path for path, sight in fields.items() if sight == "whole"],
        "masked": {path: mask for path, mask in masks.items() if isinstance(mask, Mask)},
    }
