"""The pages that describe the interface to people: a guide with a console, and the reference.

The templates beside this module make both from the OpenAPI document. What the guide says stands in
its own HTML, so it can be read without scripts; its console is Swagger UI, started by the page's
own script. The reference asks for nothing else, so it reads the same from a file.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gateway.contract import answers, errors
from gateway.contract.access import LEVEL_SUMMARIES
from gateway.contract.operations import (
    CREATE_APPOINTMENT_BODY,
    OPERATIONS,
    PAGE_DEFAULT,
    PAGE_LARGEST,
)

TEMPLATES = Path(__file__).with_name("templates")
_STYLE = (TEMPLATES / "reference.css").read_bytes()
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE).digest()).decode()
# What a browser may load: for the guide from this gateway alone, for the reference nothing.
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


def guide(document: Data, asset: Mapping[str, str]) -> str:
    """The guide for an OpenAPI document; `asset` has the addresses of the files it loads."""
    return _templates.get_template("guide.html").render(
        document=document,
        calls=_calls(document),
        asset=asset,
        about=answers,
        levels=LEVEL_SUMMARIES,
        headers=answers.HEADERS,
        examples=answers.EXAMPLES,
        summaries=errors.STATUS_SUMMARIES,
        bounds=list(_bounds_of_calls()),
    )


def reference(document: Data) -> str:
    """Every operation and field of an OpenAPI document."""
    return _templates.get_template("reference.html").render(
        document=document, calls=_calls(document)
    )


def _calls(document: Data) -> list[tuple[str, str, Data]]:
    """The method, the path and the description of each operation."""
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def _bounds_of_calls() -> Iterable[tuple[str, str]]:
    yield "Calls", "so many an hour as the clinic gave the key; the hour begins with its first call"
    yield "Records a page", f"{PAGE_DEFAULT}, with `limit` up to {PAGE_LARGEST}; `Link` leads on"
    yield "A request's body", errors.BodyTooLarge.message.partition(": ")[2]
    yield "Problems named in a 400", f"{errors.MOST_NAMED}; one more entry counts the rest"
    for field in CREATE_APPOINTMENT_BODY:
        if field.longest:
            yield f"`{field.name}` of a booking", f"at most {field.longest} characters"
    params = (param for operation in OPERATIONS for param in operation.query)
    search = next(param for param in params if param.name == "search")
    yield "`search`", f"{search.shortest} to {search.longest} characters"


def inline(text: str) -> Markup:
    """A line in which ticks stand for code."""
    code = Markup("<code>{}</code>")
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(code.format(part) if at % 2 else part for at, part in enumerate(parts))


def prose(text: str) -> Markup:
    """Paragraphs and lists with a dash, the two forms that the document's texts take."""
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


_templates = Environment(
    loader=FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_templates.filters |= {"inline": inline, "prose": prose}
