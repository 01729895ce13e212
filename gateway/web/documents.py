"""The interface's description, for programs and for people: whole, or as one key sees it.

It needs no key and is no operation: it does not count against a limit. The files that the page
for people is made of are the same for everybody.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import orjson

from adapters.base import Adapter
from gateway.contract.bounds import KeyBounds
from gateway.contract.fields import Resource
from gateway.contract.openapi import View, document
from gateway.contract.operations import BASE_PATH, Operation, Param
from gateway.contract.resources import GOVERNED
from gateway.contract.window import BookingWindow
from gateway.keys.key import Key
from gateway.keys.ring import KeyRing
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.pipeline import servable
from gateway.policy.policy import Policy
from gateway.web import docs, reference
from gateway.web.assets import FILES, Assets, Document

JSON = "application/json"
OPENAPI = f"{BASE_PATH}/openapi.json"
DOCS = f"{BASE_PATH}/docs"
REFERENCE = f"{DOCS}/reference"
# What a file of the page counts as; nothing of the clinic's is in one.
ASSET = "docs_asset"
_ASSETS = {f"{DOCS}/{name}": name for name in FILES}
# What each is called in figures and logs.
NAMES: Mapping[str, str] = {
    OPENAPI: "openapi",
    DOCS: "docs",
    REFERENCE: "docs_reference",
    **dict.fromkeys(_ASSETS, ASSET),
}
_HTML = "text/html; charset=utf-8"
_KEPT = 64


class Documents:
    """Makes each view once and keeps some of them."""

    def __init__(
        self,
        *,
        public_url: str,
        keys: KeyRing,
        policy: Callable[[], Policy],
        adapter: Adapter,
        window: BookingWindow,
        now: Callable[[], datetime],
    ) -> None:
        self._public_url = public_url
        self._keys = keys
        self._policy = policy
        self._adapter = adapter
        self._window = window
        self._now = now
        self._kept: dict[object, Document] = {}
        self._assets = Assets()

    def key(self, secrets: Sequence[str], address: str) -> Key | None:
        """Whose view is asked for; KeyInvalid for a key that is not good at that address."""
        if not secrets:
            return None
        return authenticate(secrets, address, self._keys, self._now(), settled=True)

    async def get(self, path: str, query: str, key: Key | None) -> Document:
        """What stands at one of NAMES, as that key sees it."""
        if path in _ASSETS:
            return await self._assets.get(_ASSETS[path], query)
        assets = await self._assets.addresses("docs") if path == DOCS else {}
        policy = self._policy()
        view = (path, policy.hash, key and _seen_of(key))
        found = self._kept.get(view)
        if found is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            found = self._kept[view] = self._make(path, key, policy, assets)
        return found

    def _make(
        self, path: str, key: Key | None, policy: Policy, assets: Mapping[str, str]
    ) -> Document:
        def seen(resource: Resource) -> View | None:
            return None if key is None else policy.view(resource, key.level_for(resource.name))

        data = document(
            public_url=self._public_url,
            servable=self._servable,
            window=self._window,
            bounds=None if key is None else KeyBounds(key.bookings_per_day, key.networks),
            visible=seen,
            permissions=None if key is None else key.permissions,
        )
        if path == OPENAPI:
            return Document(orjson.dumps(data), JSON, {})
        if path == DOCS:
            return Document(docs.html(data, assets).encode(), _HTML, docs.HEADERS_OF_THE_PAGE)
        headers = {"Content-Security-Policy": reference.CONTENT_SECURITY_POLICY}
        return Document(reference.html(data).encode(), _HTML, headers)

    def _servable(self, operation: Operation, param: Param) -> bool:
        return servable(operation, param, self._adapter)


def _seen_of(key: Key) -> tuple[object, ...]:
    """All of a key that its view depends on."""
    levels = tuple(key.level_for(resource.name) for resource in GOVERNED)
    return key.permissions, levels, key.bookings_per_day, key.networks
