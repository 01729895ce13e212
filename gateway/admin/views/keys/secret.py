"""The page with a secret: shown this once, kept nowhere, neither here nor by the browser."""

from collections.abc import Sequence

from aiohttp import web

from gateway.admin.visit import Visit
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.keys.base import KnownSecret
from gateway.keys.key import Key


def shown_once(
    visit: Visit, key: Key, secret: str, title: str, secrets: Sequence[KnownSecret] = ()
) -> web.Response:
    """The answer to the form that made the secret: no address leads here again."""
    before = [each.expires_at for each in secrets[:-1] if each.expires_at is not None]
    base = f"{visit.parts.public_url}{BASE_PATH}"
    response = visit.page(
        "keys/secret.html",
        key=key,
        secret=secret,
        title=title,
        until=max(before, default=None),
        base=base,
        line=f"curl -H 'X-API-Key: {secret}' {base}{_first_call(key)}",
    )
    response.headers["Cache-Control"] = "no-store, max-age=0"
    response.headers["Pragma"] = "no-cache"
    return response


def _first_call(key: Key) -> str:
    """The path of a call that the key may make, and that needs nothing but the key."""
    for each in OPERATIONS:
        bare = not any(param.required for param in each.params) and not each.creates
        if bare and each.permission in key.permissions:
            return each.path
    return "/openapi.json"
