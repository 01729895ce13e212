"""The page for partners at /api/v1/docs: how to use the interface, and a console to try it.

What it says stands in the page's own HTML, so it can be read without scripts; the console below
it is Swagger UI, started by the page's own script. Everything comes from this gateway: the policy
that a browser is told lets nothing else in.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from gateway.contract.about import AUTHENTICATION, BOOKING, INTRODUCTION, REMEDIES, VALUES, VISIBLE
from gateway.contract.access import LEVEL_SUMMARIES
from gateway.contract.answers import EXAMPLES, HEADERS
from gateway.contract.errors import MOST_NAMED, STATUS_SUMMARIES, BodyTooLarge
from gateway.contract.operations import (
    CREATE_APPOINTMENT_BODY,
    OPERATIONS,
    PAGE_DEFAULT,
    PAGE_LARGEST,
)
from gateway.web.markup import code, inline, prose, table
from gateway.web.sequence import drawing, steps

HEADERS_OF_THE_PAGE: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}

_LIMIT_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After")
_SECTIONS = {
    "authentication": "Authentication",
    "overview": "Operations",
    "booking": "Booking",
    "values": "Values",
    "levels": "Levels",
    "limits": "Limits",
    "errors": "Errors",
    "try": "Try it out",
}


def html(document: Mapping[str, Any], asset: Mapping[str, str]) -> str:
    """The whole page for an OpenAPI document; `asset` has the addresses of the files it loads."""
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n{_loaded(asset)}</head>\n<body>\n"
        f'<a class="skip" href="#main">To the text</a>\n{_header(document, title)}'
        f'<div class="page">\n{_contents()}<main id="main">\n'
        f"{''.join(_sections(document))}</main>\n</div>\n</body>\n</html>\n"
    )


def _loaded(asset: Mapping[str, str]) -> str:
    return (
        f'<link rel="icon" href="{escape(asset["icon.svg"])}">\n'
        f'<link rel="stylesheet" href="{escape(asset["swagger-ui.css"])}">\n'
        f'<link rel="stylesheet" href="{escape(asset["docs.css"])}">\n'
        f'<script src="{escape(asset["swagger-ui-bundle.js"])}" defer></script>\n'
        f'<script src="{escape(asset["docs.js"])}" defer></script>\n'
    )


def _header(document: Mapping[str, Any], title: str) -> str:
    urls = ", ".join(code(server["url"]) for server in document["servers"])
    return (
        f'<header class="top">\n<h1>{title}</h1>\n<p>{inline(INTRODUCTION)}</p>\n'
        f"<dl>\n<div><dt>Base address</dt><dd>{urls}</dd></div>\n"
        '<div><dt>For programs</dt><dd><a href="openapi.json">OpenAPI 3.1 document</a></dd></div>\n'
        '<div><dt>On one page</dt><dd><a href="docs/reference">Reference of every operation and'
        " field</a></dd></div>\n</dl>\n</header>\n"
    )


def _contents() -> str:
    items = "".join(
        f'<li><a href="#{name}">{title}</a></li>\n' for name, title in _SECTIONS.items()
    )
    return f'<nav class="contents" aria-label="Contents">\n<ul>\n{items}</ul>\n</nav>\n'


def _sections(document: Mapping[str, Any]) -> Iterable[str]:
    texts = {
        "values": prose(VALUES),
        "authentication": _authentication(),
        "overview": _operations(document),
        "booking": _booking(),
        "levels": _levels(),
        "limits": _limits(),
        "errors": _errors(),
        "try": _TRY,
    }
    for name, title in _SECTIONS.items():
        yield f'<section id="{name}">\n<h2>{title}</h2>\n{texts[name]}</section>\n'


def _authentication() -> str:
    return prose(AUTHENTICATION) + _KEY


# Shown by the script alone: without it nothing could be done with a key here.
_KEY = """\
<div id="key-box" class="box" hidden>
<h3>See the interface as your key sees it</h3>
<p>The key stays in this tab's memory: it is not stored, and not sent to anybody but this gateway.
A reload forgets it.</p>
<form id="key-form" autocomplete="off">
<label for="key">Your key</label>
<div class="row">
<input id="key" type="password" autocomplete="off" autocapitalize="none" spellcheck="false"
 maxlength="200" required aria-describedby="key-state">
<button type="submit">Use this key</button>
<button type="button" id="forget" class="quiet" hidden>Forget the key</button>
</div>
</form>
<p id="key-state" role="status"></p>
<div id="key-view"></div>
</div>
"""

_TRY = """\
<p id="try-state">Each operation can be opened and called from here, with the key that was entered
<a href="#authentication">above</a>. Calls are real: a booking is a booking, and each call counts
against the key's hour.</p>
<noscript><p class="box">This part needs JavaScript. The <a href="docs/reference">reference</a> has
every operation and field without it.</p></noscript>
<div id="console"></div>
"""


def _operations(document: Mapping[str, Any]) -> str:
    each = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    heads = ["Operation", "Call", "Permission"]
    heads += ["Level"] if any("x-access-level" in operation for _, _, operation in each) else []
    rows = [_operation(*called)[: len(heads)] for called in each]
    count = f'<p><span id="operations-count">{len(rows)}</span> operations:</p>\n'
    return count + table(heads, rows, name="Operations")


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> tuple[str, ...]:
    place = f"docs/reference#{escape(operation['operationId'])}"
    level = operation.get("x-access-level")
    return (
        f'<a href="{place}">{escape(operation["summary"])}</a>',
        code(f"{method} {path}"),
        code(operation["x-permission"]),
        code(level) if level else "",
    )


def _booking() -> str:
    return f'{prose(BOOKING)}<div class="flow">\n{drawing()}{steps()}</div>\n'


def _levels() -> str:
    rows = [(code(level), inline(f"{text}.")) for level, text in LEVEL_SUMMARIES.items()]
    return table(("Level", "What is visible"), rows, name="Levels") + prose(VISIBLE)


def _limits() -> str:
    rows = [(inline(what), inline(much)) for what, much in _bounds()]
    headers = [(code(name), inline(HEADERS[name]["description"])) for name in _LIMIT_HEADERS]
    return (
        table(("What", "How much"), rows, name="Limits")
        + "<p>Where a key's hour stands is told by headers of each answer:</p>\n"
        + table(("Header", "Meaning"), headers, name="Headers of the limit")
    )


def _bounds() -> Iterable[tuple[str, str]]:
    yield "Calls", "so many an hour as the clinic gave the key; the hour begins with its first call"
    yield "Records a page", f"{PAGE_DEFAULT}, with `limit` up to {PAGE_LARGEST}; `Link` leads on"
    yield "A request's body", BodyTooLarge.message.partition(": ")[2]
    yield "Problems named in a 400", f"{MOST_NAMED}; one more entry counts the rest"
    for field in [each for each in CREATE_APPOINTMENT_BODY if each.longest]:
        yield f"`{field.name}` of a booking", f"at most {field.longest} characters"
    [search] = {
        (each.shortest, each.longest)
        for operation in OPERATIONS
        for each in operation.query
        if each.name == "search"
    }
    yield "`search`", f"{search[0]} to {search[1]} characters"


def _errors() -> str:
    def messages(status: int) -> Iterable[str]:
        return (code(each.message) for each in EXAMPLES[status])

    rows = [
        (
            code(str(status)),
            "<br>".join((inline(STATUS_SUMMARIES[status]), *messages(status))),
            inline(REMEDIES[status]),
        )
        for status in sorted(EXAMPLES)
    ]
    about = (
        "Every error is a JSON object with `message`. A 429 adds `retryAfter`, the seconds to wait;"
        " a 400 adds `errors`, a list of `field` and `problem` with everything that is wrong."
        " `X-Request-Id` of the answer is what the clinic finds the call by."
    )
    heads = ("Status", "Meaning and message", "What to do")
    return prose(about) + table(heads, rows, name="Errors")
