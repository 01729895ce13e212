"""Static files, each read and packed when it is first asked for, and templates of pages."""

import gzip
import hashlib
import mimetypes
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # see `templates`
    from jinja2 import Environment

# The Cache-Control of an address with the file's digest, and of any other.
FOR_GOOD, ASK_AGAIN = "public, max-age=31536000, immutable", "public, no-cache"


@dataclass(frozen=True)
class StaticFile:
    """One static file; it is read only when one of its properties is."""

    path: Path

    @cached_property
    def kind(self) -> str:
        """The media type, without a charset; bytes where it is unknown."""
        return mimetypes.guess_type(self.path.name)[0] or "application/octet-stream"

    @cached_property
    def body(self) -> bytes:
        return self.path.read_bytes()

    @cached_property
    def packed(self) -> bytes:
        """The body, compressed by gzip when it is first asked for."""
        return gzip.compress(self.body, mtime=0)

    @cached_property
    def query(self) -> str:
        """The query of the address under which a browser may keep the file for good."""
        return f"v={hashlib.sha256(self.body).hexdigest()[:16]}"

    def cache(self, query: str) -> str:
        """Returns the Cache-Control for an answer to that query."""
        return FOR_GOOD if query == self.query else ASK_AGAIN


def static_files(folder: Path) -> dict[str, StaticFile]:
    """Returns every file below a folder, by its path there."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): StaticFile(path) for path in paths}


def templates(folder: Path) -> "Environment":
    """Returns the templates in a folder; those of HTML and SVG escape what they are given."""
    # imported late: a process that nobody asks for a page does without
    from jinja2 import (  # noqa: PLC0415
        Environment,
        FileSystemLoader,
        StrictUndefined,
        select_autoescape,
    )

    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(["html", "svg"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def accepts_gzip(values: Iterable[str]) -> bool:
    """Returns whether headers Accept-Encoding with these values want gzip."""
    for value in ",".join(values).lower().split(","):
        name, _, rest = value.partition(";")
        if name.strip() in {"gzip", "x-gzip"}:
            quality = rest.strip().replace(" ", "").removeprefix("q=")
            return quality.strip("0.") != "" or quality == ""
    return False
