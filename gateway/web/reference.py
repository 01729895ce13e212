"""The reference for people: one page made from the OpenAPI document, without scripts.

The page is self-contained: it asks for nothing else, so it reads the same from a file.
`CONTENT_SECURITY_POLICY` is the header that holds it to that.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from gateway.web.markup import code, inline, prose, table

STYLE = """\
:root { color-scheme: light dark; --line: #8885; --soft: #8881; --accent: #0b6b8a; }
@media (prefers-color-scheme: dark) { :root { --accent: #6cc5e0; } }
* { box-sizing: border-box; }
html { background: Canvas; color: CanvasText; }
body { font: 1rem/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1.5rem; }
h1, h2, h3, h4 { line-height: 1.25; }
h2 { border-bottom: 1px solid var(--line); margin-top: 3rem; padding-bottom: .25rem; }
h3 { margin-top: 2.5rem; }
h4 { margin-bottom: .25rem; }
a { color: var(--accent); }
code, pre { background: var(--soft); border-radius: .25rem; font: .9em ui-monospace, monospace; }
code { overflow-wrap: anywhere; padding: .1em .3em; }
.method { background: var(--accent); border-radius: .25rem; color: Canvas; padding: .15em .5em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .75rem .35rem 0; }
th, td { text-align: left; vertical-align: top; }
nav ul { columns: 20rem; padding-left: 1.2rem; }
"""

_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)

Data = Mapping[str, Any]


def html(document: dict[str, Any]) -> str:
    """The whole page for an OpenAPI document as this gateway makes it."""
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{title}</h1>\n{_bases(document)}{prose(info['description'])}</header>\n"
        f"{_contents(document)}<main>\n{_operations(document)}{_schemas(document)}</main>\n"
        "</body>\n</html>\n"
    )


def _bases(document: Data) -> str:
    urls = ", ".join(code(server["url"]) for server in document["servers"])
    return f"<p>Base address: {urls}</p>\n"


def _each(document: Data) -> Iterable[tuple[str, str, Data]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _contents(document: Data) -> str:
    calls = "".join(
        f'<li><a href="#{escape(each["operationId"])}">{escape(each["summary"])}</a></li>\n'
        for _, _, each in _each(document)
    )
    calls += '<li><a href="#schemas">Schemas</a></li>\n'
    return f'<nav aria-label="Contents">\n<ul>\n{calls}</ul>\n</nav>\n'


def _operations(document: Data) -> str:
    parts, last = [], ""
    for method, path, operation in _each(document):
        tag = operation["tags"][0]
        if tag != last:
            parts.append(f"<h2>{escape(tag.capitalize())}</h2>\n")
        last = tag
        parts.append(_operation(document, method, path, operation))
    return "".join(parts)


def _operation(document: Data, method: str, path: str, operation: Data) -> str:
    return (
        f'<section id="{escape(operation["operationId"])}">\n'
        f"<h3>{escape(operation['summary'])}</h3>\n"
        f'<p><code class="method">{escape(method)}</code> {code(path)}</p>\n'
        f"{prose(operation['description'])}"
        f"{_parameters(operation.get('parameters', ()))}"
        f"{_body(operation.get('requestBody'))}"
        f"{_responses(document, operation['responses'])}</section>\n"
    )


def _parameters(parameters: Iterable[Data]) -> str:
    rows = [
        (
            code(each["name"]) + _required(each["required"]),
            escape(each["in"]),
            _kind(each["schema"]),
            inline(each["description"]),
        )
        for each in parameters
    ]
    if not rows:
        return ""
    return "<h4>Parameters</h4>\n" + table(("Name", "In", "Type", "Meaning"), rows, "Parameters")


def _body(body: Data | None) -> str:
    if body is None:
        return ""
    return f"<h4>Body</h4>\n<p>{_kind(_json_schema(body))}, as JSON</p>\n"


def _responses(document: Data, responses: Data) -> str:
    rows = []
    for status, reference in responses.items():
        answer = _resolved(document, reference)
        headers = ", ".join(map(code, answer["headers"]))
        text = escape(answer["description"])
        rows.append((code(status), text, _kind(_json_schema(answer)), headers))
    heads = ("Status", "Meaning", "Body", "Headers")
    return "<h4>Answers</h4>\n" + table(heads, rows, "Answers")


def _schemas(document: Data) -> str:
    parts = ['<h2 id="schemas">Schemas</h2>\n']
    for name, schema in document["components"]["schemas"].items():
        parts.append(f'<section id="schema-{escape(name)}">\n<h3>{escape(name)}</h3>\n')
        parts.append(f"<p>{inline(schema.get('description', ''))}</p>\n")
        parts.append(table(("Member", "Type", "Meaning"), _members(schema), f"Members of {name}"))
        parts.append("</section>\n")
    headers = [
        (code(name), _kind(each["schema"]), inline(each["description"]))
        for name, each in document["components"]["headers"].items()
    ]
    parts.append("<h2>Headers of answers</h2>\n")
    parts.append(table(("Header", "Type", "Meaning"), headers, "Headers of answers"))
    return "".join(parts)


def _members(schema: Data, prefix: str = "") -> list[tuple[str, ...]]:
    """A row for each member, those of nested objects under their path."""
    rows: list[tuple[str, ...]] = []
    for name, member in schema["properties"].items():
        needed = _required(name in schema["required"])
        rows.append(
            (code(prefix + name) + needed, _kind(member), inline(member.get("description", "")))
        )
        items = member.get("items", {})
        if "properties" in items:
            rows += _members(items, f"{prefix}{name}[].")
    return rows


def _resolved(document: Data, item: Data) -> Data:
    if "$ref" not in item:
        return item
    found: Any = document
    for part in item["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)


def _json_schema(holder: Data) -> Data:
    schema: Data = holder["content"]["application/json"]["schema"]
    return schema


def _kind(schema: Data) -> str:
    """A schema in a few words: its type, its format, its bounds, its values."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    types = schema.get("type", "string")
    *others, first = reversed([types] if isinstance(types, str) else types)
    said = f"list of {_kind(schema['items'])}" if first == "array" else escape(first)
    if "format" in schema:
        said += f" ({escape(schema['format'])})"
    said += "".join(f" or {escape(other)}" for other in others)
    return said + _bounds(schema)


_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "default": "default {}",
}


def _bounds(schema: Data) -> str:
    said = [
        text.format(escape(json.dumps(schema[name])))
        for name, text in _BOUNDS.items()
        if name in schema
    ]
    said += _length(schema)
    values = [value for value in schema.get("enum", [schema.get("const")]) if value is not None]
    if values:
        said.append("one of " + ", ".join(map(code, values)))
    said += [f"such as {code(example)}" for example in schema.get("examples", ())]
    return "".join(f", {each}" for each in said)


def _length(schema: Data) -> list[str]:
    """How many characters a text has, in words; [] where nothing bounds it."""
    least, most = schema.get("minLength"), schema.get("maxLength")
    if most is None:
        return [f"{least} characters or more"] if least else []
    return [f"{least} to {most} characters" if least else f"at most {most} characters"]


def _required(required: bool) -> str:
    return " required" if required else ""
