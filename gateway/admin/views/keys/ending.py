"""A new secret for a key, and the end of a key."""

from aiohttp import web

from gateway.admin.views.keys.card import OVERLAPS, card
from gateway.admin.views.keys.found import found_key
from gateway.admin.views.keys.secret import shown_once
from gateway.admin.visit import Visit
from gateway.keys.base import ChangedKey, RevokedKey
from gateway.keys.store import KeyStore


async def rotate(visit: Visit) -> web.Response:
    """A new secret, this once; a form that was sent before makes no other one."""
    key, _ = await found_key(visit)
    overlap = OVERLAPS.get(visit.text("overlap"))
    if overlap is None:
        raise web.HTTPNotFound
    try:
        async with visit.deed("key rotated", key.id, name=key.name, overlap=visit.text("overlap")):
            made = await KeyStore(visit.parts.store).rotate(
                key.id, overlap, visit.parts.now(), visit.text("hint")
            )
    except ChangedKey:
        return visit.page("keys/already.html", 409, key_id=key.id, reason="already_rotated")
    except RevokedKey as error:
        raise web.HTTPNotFound from error
    return shown_once(visit, made.key, made.secret, "rotated", made.secrets)


async def revoke(visit: Visit) -> web.Response:
    """Refused from now on, where its name was typed."""
    key, _ = await found_key(visit)
    if visit.text("confirm") != key.name:
        wrong = visit.words("keys.revoke_differs", name=key.name)
        return await card(visit, {"confirm": wrong})
    async with visit.deed("key revoked", key.id, name=key.name):
        await KeyStore(visit.parts.store).revoke(key.id, visit.parts.now())
    return visit.go(f"/keys/{key.id}", "keys.revoked")
