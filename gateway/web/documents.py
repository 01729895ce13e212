"""The interface's description, for programs and for people: whole, or as one key sees it.

It needs no key and is no operation: it does not count against a limit. The files that the guide
loads are the same for everybody.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from adapters.base import Adapter
from gateway.assets import FOR_GOOD, StaticFile
from gateway.contract.fields import Resource
from gateway.contract.openapi import View, document
from gateway.contract.operations import BASE_PATH
from gateway.contract.resources import GOVERNED
from gateway.contract.window import BookingWindow, KeyBounds
from gateway.keys.key import Key
from gateway.keys.ring import KeyRing
from gateway.pipeline.pipeline import servable
from gateway.pipeline.steps import authenticate
from gateway.policy.policy import Policy
from gateway.web import pages

_FOLDER = Path(__file__).parent / "static"
_SWAGGER_UI = _FOLDER / "vendor/swagger-ui-dist"
JSON, _HTML = "application/json", "text/html; charset=utf-8"
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
# The files that the guide loads, with their media types, by the names that they are asked for with.
# Their addresses hold a digest of what is in them, so that a browser may keep them for good.
FILES: Mapping[str, tuple[StaticFile, str]] = {
    "docs.js": (StaticFile(_FOLDER / "docs.js"), _SCRIPT),
    "docs.css": (StaticFile(_FOLDER / "docs.css"), _STYLE),
    "icon.svg": (StaticFile(_FOLDER / "icon.svg"), "image/svg+xml"),
    "swagger-ui-bundle.js": (StaticFile(_SWAGGER_UI / "swagger-ui-bundle.js"), _SCRIPT),
    "swagger-ui.css": (StaticFile(_SWAGGER_UI / "swagger-ui.css"), _STYLE),
}
# What another version's page asks for must not be kept as that version's.
ASK_AGAIN = "public, no-cache"

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
_KEPT = 64


class Content(NamedTuple):
    """Bytes, their media type, the headers that belong to them; `packed` is the same by gzip."""

    body: bytes
    kind: str
    headers: Mapping[str, str] = {}
    packed: bytes | None = None
    cache: str = "private, no-store"


def _addresses() -> Mapping[str, str]:
    """The address of each of FILES, as the guide at DOCS has it."""
    return {name: f"docs/{name}?{file.query}" for name, (file, _) in FILES.items()}


@dataclass(kw_only=True, eq=False)
class Documents:
    """Makes each view once and keeps some of them."""

    public_url: str
    keys: KeyRing
    policy: Callable[[], Policy]
    adapter: Adapter
    window: BookingWindow
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._kept: dict[object, Content] = {}

    def key(self, secrets: Sequence[str], address: str) -> Key | None:
        """Whose view is asked for; KeyInvalid for a key that is not good at that address."""
        if not secrets:
            return None
        return authenticate(secrets, address, self.keys, self.now(), settled=True)

    async def get(self, path: str, query: str, key: Key | None) -> Content:
        """What stands at one of NAMES, as that key sees it."""
        if path in _ASSETS:
            file, kind = FILES[_ASSETS[path]]
            # in a thread: the first time that takes as long as many a page
            packed = await asyncio.to_thread(lambda: file.packed)
            cache = FOR_GOOD if query == file.query else ASK_AGAIN
            return Content(file.body, kind, packed=packed, cache=cache)
        assets = await asyncio.to_thread(_addresses) if path == DOCS else {}
        policy = self.policy()
        seen: tuple[object, ...] = ()
        if key is not None:
            # all of a key that its view depends on
            levels = tuple(key.level_for(resource.name) for resource in GOVERNED)
            seen = key.permissions, levels, key.bookings_per_day, key.networks
        view = path, policy.hash, seen
        if view not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[view] = self._make(path, key, policy, assets)
        return self._kept[view]

    def _make(
        self, path: str, key: Key | None, policy: Policy, assets: Mapping[str, str]
    ) -> Content:
        def seen(resource: Resource) -> View | None:
            return None if key is None else policy.view(resource, key.level_for(resource.name))

        data = document(
            public_url=self.public_url,
            servable=lambda operation, param: servable(operation, param, self.adapter),
            window=self.window,
            bounds=None if key is None else KeyBounds(key.bookings_per_day, key.networks),
            visible=seen,
            permissions=None if key is None else key.permissions,
        )
        if path == OPENAPI:
            return Content(orjson.dumps(data), JSON)
        if path == DOCS:
            return Content(pages.guide(data, assets).encode(), _HTML, pages.GUIDE_HEADERS)
        return Content(pages.reference(data).encode(), _HTML, pages.REFERENCE_HEADERS)
