"""Serves the description of the interface, for programs and people: whole, or as one key sees it.

It needs no key and does not count against a limit. For people there are a guide with a console, and
the reference, which templates make from the OpenAPI document. The guide can be read without
scripts. Its console is Swagger UI. The reference loads nothing, so it reads the same from a file.
"""

import asyncio
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from markupsafe import Markup

from adapters.base import Adapter
from gateway.assets import StaticFile, templates
from gateway.contract import answers, errors, openapi, operations
from gateway.contract.access import LEVEL_SUMMARIES, Permission
from gateway.contract.resources import GOVERNED
from gateway.contract.window import BookingWindow
from gateway.keys.key import Key
from gateway.pipeline.forward import servable
from gateway.policy.policy import Policy

_FOLDER = Path(__file__).parent / "static"
_SWAGGER_UI = _FOLDER / "vendor/swagger-ui-dist"
JSON, _HTML = "application/json", "text/html; charset=utf-8"
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
# The files that the guide loads, with their media types, by name. Their addresses hold a digest of
# the content too, so that a browser may keep them for good.
FILES: Mapping[str, tuple[StaticFile, str]] = {
    "docs.js": (StaticFile(_FOLDER / "docs.js"), _SCRIPT),
    "docs.css": (StaticFile(_FOLDER / "docs.css"), _STYLE),
    "icon.svg": (StaticFile(_FOLDER / "icon.svg"), "image/svg+xml"),
    "swagger-ui-bundle.js": (StaticFile(_SWAGGER_UI / "swagger-ui-bundle.js"), _SCRIPT),
    "swagger-ui.css": (StaticFile(_SWAGGER_UI / "swagger-ui.css"), _STYLE),
}

OPENAPI = f"{operations.BASE_PATH}/openapi.json"
DOCS = f"{operations.BASE_PATH}/docs"
REFERENCE = f"{DOCS}/reference"
# The name that files of the guide count under. They hold nothing of the clinic's.
ASSET = "docs_asset"
_ASSETS = {f"{DOCS}/{name}": name for name in FILES}
# The name of each path in figures and logs.
NAMES: Mapping[str, str] = {
    OPENAPI: "openapi",
    DOCS: "docs",
    REFERENCE: "docs_reference",
    **dict.fromkeys(_ASSETS, ASSET),
}
_KEPT = 64
_TEMPLATES = Path(__file__).with_name("templates")
_STYLE_HASH = b64encode(sha256((_TEMPLATES / "reference.css").read_bytes()).digest()).decode()
# A browser may load the files of this gateway for the guide, and nothing for the reference.
GUIDE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}
REFERENCE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    )
}
Data = Mapping[str, Any]


class Content(NamedTuple):
    """Bytes, their media type and their headers; `packed` are the same bytes by gzip."""

    body: bytes
    kind: str
    headers: Mapping[str, str] = {}
    packed: bytes | None = None
    cache: str = "private, no-store"


@dataclass(kw_only=True, eq=False)
class Documents:
    """The pages and files at NAMES; makes each view of a page once, and keeps up to 64."""

    public_url: str
    policy: Callable[[], Policy]
    adapter: Adapter
    window: BookingWindow

    def __post_init__(self) -> None:
        self._kept: dict[object, Content] = {}
        self._packing = asyncio.Lock()

    async def get(self, path: str, query: str, key: Key | None) -> Content:
        """Returns what stands at one of NAMES, as that key sees it."""
        if path in _ASSETS:
            file, kind = await self._file(_ASSETS[path])
            return Content(file.body, kind, packed=file.packed, cache=file.cache(query))
        assets = {}
        if path == DOCS:
            for name in FILES:
                assets[name] = f"docs/{name}?{(await self._file(name))[0].query}"
        policy = self.policy()
        seen: tuple[object, ...] = ()
        if key is not None:
            # what the view of a key depends on
            levels = tuple(key.level_for(resource.name) for resource in GOVERNED)
            seen = key.permissions, levels, key.bookings_per_day, key.networks
        view = path, policy.hash, seen
        if view not in self._kept:
            if path in (DOCS, REFERENCE):
                # loads a library: other calls go on meanwhile
                await asyncio.to_thread(_templates)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            granted = frozenset(Permission) if key is None else key.permissions
            offered = operations.offered(self.adapter.resources, books=self.adapter.books)
            data = openapi.document(
                public_url=self.public_url,
                offered=(known for known in offered if known.permission in granted),
                servable=lambda operation, param: servable(operation, param, self.adapter),
                window=self.window,
                bookings_per_day=None if key is None else key.bookings_per_day,
                networks=() if key is None else key.networks,
                visible=lambda resource: (
                    None if key is None else policy.view(resource, key.level_for(resource.name))
                ),
            )
            self._kept[view] = _rendered(path, data, assets)
        return self._kept[view]

    async def _file(self, name: str) -> tuple[StaticFile, str]:
        """Returns one of FILES; the first request for it has a thread read and pack it, once."""
        file, kind = FILES[name]
        async with self._packing:
            if "query" not in vars(file):
                await asyncio.to_thread(lambda: (file.packed, file.query))
        return file, kind


def _rendered(path: str, document: Data, asset: Mapping[str, str]) -> Content:
    """Returns the OpenAPI document, or the page that is made of it, by its path."""
    if path == DOCS:
        return Content(guide(document, asset).encode(), _HTML, GUIDE_HEADERS)
    if path == REFERENCE:
        return Content(reference(document).encode(), _HTML, REFERENCE_HEADERS)
    return Content(orjson.dumps(document), JSON)


def guide(document: Data, asset: Mapping[str, str]) -> str:
    """Returns the guide for an OpenAPI document; `asset` has the addresses of its files."""
    return _page("guide.html", document, asset=asset)


def reference(document: Data) -> str:
    """Returns a page with every operation and field of an OpenAPI document."""
    return _page("reference.html", document)


def _page(template: str, document: Data, **values: Any) -> str:
    # the method, the path and the description of each operation
    calls = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    page = _templates().get_template(template)
    text: str = page.render(document=document, calls=calls, **values)
    return text


def inline(text: str) -> Markup:
    """Renders a line in which backticks mark code."""
    code = Markup("<code>{}</code>")
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(code.format(part) if at % 2 else part for at, part in enumerate(parts))


def prose(text: str) -> Markup:
    """Renders paragraphs and lists with a dash, the two forms of the document's texts."""
    blocks = []
    for block in text.strip().split("\n\n"):
        if block.startswith("- "):
            items = (
                Markup("<li>{}</li>\n").format(inline(line[2:])) for line in block.splitlines()
            )
            blocks.append(Markup("<ul>\n{}</ul>\n").format(Markup().join(items)))
        else:
            blocks.append(Markup("<p>{}</p>\n").format(inline(block)))
    return Markup().join(blocks)


@cache
def _templates() -> Any:
    """Returns the templates of the pages; the first call takes long."""
    made = templates(_TEMPLATES)
    made.filters |= {"inline": inline, "prose": prose}
    made.globals.update(about=answers, errors=errors, operations=operations, levels=LEVEL_SUMMARIES)
    return made
