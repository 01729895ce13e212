"""The interface's description, for programs and for people: whole, or as one key sees it.

It needs no key and is no operation: it does not count against a limit. The files that the guide
loads are the same for everybody.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from adapters.base import Adapter
from gateway.assets import pack
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
_SWAGGER_UI = "vendor/swagger-ui-dist"
JSON, _HTML = "application/json", "text/html; charset=utf-8"
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
# Where each file lies, and its media type, by the name that it is asked for with.
FILES: Mapping[str, tuple[str, str]] = {
    "docs.js": ("docs.js", _SCRIPT),
    "docs.css": ("docs.css", _STYLE),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    "swagger-ui-bundle.js": (f"{_SWAGGER_UI}/swagger-ui-bundle.js", _SCRIPT),
    "swagger-ui.css": (f"{_SWAGGER_UI}/swagger-ui.css", _STYLE),
}
FOR_GOOD = "public, max-age=31536000, immutable"
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


class Assets:
    """The files that the guide loads, read and packed in a thread when one is first asked for.

    Their addresses hold a digest of what is in them, so that a browser may keep them for good.
    """

    def __init__(self) -> None:
        self._files: Mapping[str, tuple[Content, str]] = {}
        self._reading = asyncio.Lock()

    async def get(self, name: str, query: str) -> Content:
        """One of FILES, to be kept for good where the query names the digest of what it is."""
        content, version = (await self._read())[name]
        return content._replace(cache=FOR_GOOD if query == version else ASK_AGAIN)

    async def addresses(self, folder: str) -> Mapping[str, str]:
        """The address of each of FILES, by its name."""
        files = await self._read()
        return {name: f"{folder}/{name}?{version}" for name, (_, version) in files.items()}

    async def _read(self) -> Mapping[str, tuple[Content, str]]:
        if not self._files:
            async with self._reading:
                self._files = self._files or await asyncio.to_thread(_read_all)
        return self._files


def _read_all() -> Mapping[str, tuple[Content, str]]:
    """Each of FILES, with the query that names its digest."""
    files = {}
    for name, (path, kind) in FILES.items():
        body = (_FOLDER / path).read_bytes()
        version = f"v={hashlib.sha256(body).hexdigest()[:16]}"
        files[name] = Content(body, kind, packed=pack(body)), version
    return files


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
        self._assets = Assets()

    def key(self, secrets: Sequence[str], address: str) -> Key | None:
        """Whose view is asked for; KeyInvalid for a key that is not good at that address."""
        if not secrets:
            return None
        return authenticate(secrets, address, self.keys, self.now(), settled=True)

    async def get(self, path: str, query: str, key: Key | None) -> Content:
        """What stands at one of NAMES, as that key sees it."""
        if path in _ASSETS:
            return await self._assets.get(_ASSETS[path], query)
        assets = await self._assets.addresses("docs") if path == DOCS else {}
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
