"""Making and changing a key: one form, which shows meanwhile what the key will see."""

from dataclasses import replace
from uuid import UUID, uuid4

from aiohttp import web

from gateway.admin.views.keys import form as forms
from gateway.admin.views.keys.form import KeyForm
from gateway.admin.views.keys.found import found_key
from gateway.admin.views.keys.secret import shown_once
from gateway.admin.views.keys.seen import seen_by
from gateway.admin.visit import KEYS, Visit
from gateway.contract.access import LEVELS, Permission
from gateway.contract.resources import GOVERNED
from gateway.inquiries.key_settings import changes_told, settings_told
from gateway.keys.base import ChangedKey, KeyExists, RevokedKey
from gateway.keys.key import Key, new_key
from gateway.keys.store import KeyStore


async def making(visit: Visit) -> web.Response:
    """The form of a new key. Its id is made here, so that one form makes one key."""
    return _form(visit, forms.blank(), key_id=str(uuid4()))


async def make(visit: Visit) -> web.Response:
    """A new key, and its secret this once; or the form, with what is wrong or what it will see."""
    written, key_id = forms.written(visit), _uuid(visit.text("id"))
    if visit.text("show"):
        return _form(visit, written, key_id=key_id)
    settings = forms.settings(written, visit)
    await _check_name(visit, written)
    if written.errors:
        return _form(visit, written, key_id=key_id)
    key = replace(new_key(now=visit.parts.now(), **settings), id=key_id)
    try:
        async with visit.deed("key made", key.id, **settings_told(key)):
            secret = await KeyStore(visit.parts.store).add(key)
    except KeyExists:
        return visit.page("keys/already.html", 409, key_id=key_id, reason="already_made")
    return shown_once(visit, key, secret, "made")


async def changing(visit: Visit) -> web.Response:
    """The form of a key that there is."""
    key, _ = await found_key(visit)
    return _form(visit, forms.of_key(key, visit), key=key)


async def change(visit: Visit) -> web.Response:
    """Other settings from now on, unless somebody else has changed them since the form was made."""
    key, _ = await found_key(visit)
    written = forms.written(visit)
    if visit.text("show"):
        return _form(visit, written, key=key)
    if written.was != forms.mark_of(key):
        return _changed_meanwhile(visit, key)
    settings = forms.settings(written, visit, key)
    await _check_name(visit, written, key)
    if written.errors:
        return _form(visit, written, key=key)
    news = changes_told(key, replace(key, **settings))
    try:
        async with visit.deed("key changed", key.id, **news):
            await KeyStore(visit.parts.store).update(key.id, key, **settings)
    except ChangedKey:
        return _changed_meanwhile(visit, key)
    except RevokedKey as error:
        raise web.HTTPNotFound from error
    return visit.go(f"/keys/{key.id}", "keys.saved")


async def sees(visit: Visit) -> web.Response:
    """What the key will see, by what is chosen so far: a part of the form's page."""
    chosen = forms.as_chosen(forms.written(visit), visit.parts.now())
    return visit.page("keys/sees.html", **seen_by(visit, chosen), title="will_see")


def _changed_meanwhile(visit: Visit, key: Key) -> web.Response:
    return visit.page("keys/already.html", 409, key_id=key.id, reason="already_changed")


async def _check_name(visit: Visit, written: KeyForm, key: Key | None = None) -> None:
    """Two active keys of one name would be taken for each other."""
    if "name" in written.errors or (key is not None and key.name == written.name):
        return
    same = await visit.request.app[KEYS].named(written.name, visit.parts.now())
    if any(key is None or each.id != key.id for each in same):
        written.errors["name"] = visit.words("keys.same_name")


def _form(visit: Visit, form: KeyForm, *, key_id: str = "", key: Key | None = None) -> web.Response:
    chosen = forms.as_chosen(form, visit.parts.now())
    return visit.page(
        "keys/form.html",
        422 if form.errors else 200,
        form=form,
        errors=form.errors,
        edited=key,
        key_id=key_id,
        permissions=list(Permission),
        levels=LEVELS,
        resources=[each.name for each in GOVERNED],
        title="will_see",
        **seen_by(visit, chosen),
    )


def _uuid(text: str) -> str:
    """The id that the form was given; another one where somebody changed it."""
    try:
        return str(UUID(text))
    except ValueError:
        return str(uuid4())
