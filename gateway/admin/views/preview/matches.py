"""The keys that somebody may mean, by a name, an id, or how a key begins."""

import re
from collections.abc import Sequence
from contextlib import suppress

from aiohttp import web

from gateway.admin.visit import KEYS, Visit
from gateway.contract.fields import read_uuid
from gateway.inquiries.key_book import Listed, Which
from gateway.keys.base import OddKey, UnknownKey
from gateway.keys.key import Key
from gateway.keys.secret import FORM
from gateway.keys.store import KeyStore

MOST = 12
_secret = re.compile(FORM).search


async def meant(visit: Visit, text: str) -> Sequence[Key]:
    """The key with that id, name or hint, where there is one such; else all that it fits."""
    with suppress(ValueError, UnknownKey, OddKey):
        return [await KeyStore(visit.parts.store).get(read_uuid(text))]
    found = await _found(visit, text)
    for alike in (_named, _hinted):
        if len(same := [each.key for each in found if alike(each, text)]) == 1:
            return same
    return [each.key for each in found]


async def matches(visit: Visit) -> web.Response:
    """What the page offers while a key is being written: a part of it."""
    text = visit.asked("key")
    listed = (await _found(visit, text))[:MOST] if text else []
    names = [each.key.name for each in listed]
    offered = [
        (each.key.name if names.count(each.key.name) == 1 else each.key.id, each) for each in listed
    ]
    return visit.page("preview/matches.html", offered=offered)


async def _found(visit: Visit, text: str) -> list[Listed]:
    found = await visit.request.app[KEYS].find(text, Which.ALL, visit.parts.now())
    return sorted(found.keys, key=lambda each: (each.key.name.casefold(), each.key.id))


def _named(listed: Listed, text: str) -> bool:
    return listed.key.name.casefold() == text.casefold()


def _hinted(listed: Listed, text: str) -> bool:
    return any(each.hint == text for each in listed.secrets)


def without_secret(text: str) -> str:
    """What was written; of a secret only how it begins, so that no page repeats it."""
    found = _secret(text)
    return text if found is None else found[0][:8]
