"""The files that the page for partners is made of: read once, when they are first asked for.

Their addresses hold a digest of what is in them, so that a browser may keep them for good.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gateway.assets import pack

_FOLDER = Path(__file__).parent / "static"
_SWAGGER_UI = "vendor/swagger-ui-dist"
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


class Document(NamedTuple):
    """Bytes, their media type, the headers that belong to them; `packed` is the same by gzip."""

    body: bytes
    kind: str
    headers: Mapping[str, str]
    packed: bytes | None = None
    cache: str = "private, no-store"


class Asset(NamedTuple):
    """A file that was read."""

    body: bytes
    packed: bytes
    kind: str
    digest: str


class Assets:
    """All of them, read and packed in a thread: that takes as long as hundreds of calls."""

    def __init__(self) -> None:
        self._files: Mapping[str, Asset] = {}
        self._reading = asyncio.Lock()

    async def get(self, name: str, query: str) -> Document:
        """One of FILES, to be kept for good where the query names the digest of what it is."""
        asset = (await self._read())[name]
        cache = FOR_GOOD if query == _query(asset) else ASK_AGAIN
        return Document(asset.body, asset.kind, {}, asset.packed, cache)

    async def addresses(self, folder: str) -> Mapping[str, str]:
        """The address of each of FILES, by its name."""
        files = await self._read()
        return {name: f"{folder}/{name}?{_query(each)}" for name, each in files.items()}

    async def _read(self) -> Mapping[str, Asset]:
        if not self._files:
            async with self._reading:
                self._files = self._files or await asyncio.to_thread(_all)
        return self._files


def _query(asset: Asset) -> str:
    return f"v={asset.digest}"


def _all() -> Mapping[str, Asset]:
    return MappingProxyType({name: _asset(*found) for name, found in FILES.items()})


def _asset(path: str, kind: str) -> Asset:
    body = (_FOLDER / path).read_bytes()
    return Asset(body, pack(body), kind, hashlib.sha256(body).hexdigest()[:16])
