"""The tables of the README, made from the code: `make tables` writes them into their places.

The section of alarms, the alarms for Prometheus and the proxy files of the examples are too.

A block is marked by comments with its name; its first two lines, the head, stay as they are.
"""

import json
import re
import textwrap
from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import FieldShape
from adapters.documents.problems import Check
from adapters.mapping.checker import CHECKS as MAPPING_CHECKS
from adapters.mapping.checker import LAWS
from adapters.mapping.conversion import Conversion
from adapters.mapping.converters import CONVERTERS, DEFAULTS, Converters
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.errors import GatewayError
from gateway.contract.operations import CREATE_APPOINTMENT_BODY, OPERATIONS
from gateway.contract.resources import GOVERNED, RESOURCES, SLOT
from gateway.events import Alarm, event_table
from gateway.observe.metrics import FIGURES
from gateway.policy.masks import KINDS, Mask, read_mask
from gateway.policy.reading import CHECKS as POLICY_CHECKS
from gateway.policy.reading.document import load_policy
from gateway.policy.reading.schema import policy_schema
from gateway.purposes import NEEDED_FOR, Purpose
from gateway.settings import CHECKS as SETTINGS_CHECKS
from gateway.settings import GROUPS, Settings, names
from tests.edge import shipped

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ("connecting", "mapping", "policies", "operations")
PAGES = (README, *(ROOT / "docs" / f"{name}.md" for name in DOCS))


def operations() -> list[str]:
    return [
        f"| {each.method} | {each.path} | {each.permission} | {each.summary} |"
        for each in OPERATIONS
    ]


def levels() -> list[str]:
    policy = load_policy(ROOT / "policies.yaml", lambda trouble: None)
    rows = []
    for resource in GOVERNED:
        cells = [
            " ".join(
                f"`{path}`" for path in resource.paths if opens(policy, resource.name, path, at)
            )
            for at in LEVELS
        ]
        rows.append(f"| {resource.name} | {' | '.join(cells)} |")
    return rows


def opens(policy: object, resource: str, path: str, level: AccessLevel) -> bool:
    return policy.rules[resource].opened_at(path) is level  # type: ignore[attr-defined]


def slots() -> list[str]:
    [operation] = [each for each in OPERATIONS if each.returns is SLOT]
    return [
        f"| `{each.name}` | {YES[each.required]} | {FORMS[each.format.name]} | {each.summary} |"
        for each in operation.query
    ]


def booking() -> list[str]:
    rows = []
    for each in CREATE_APPOINTMENT_BODY:
        form = FORMS[each.format.name].format(each.longest)
        form += "" if each.default is None else f", `{json.dumps(each.default)}` where it is absent"
        rows.append(f"| `{each.name}` | {YES[each.required]} | {form} | {each.summary} |")
    return rows


YES = {True: "yes", False: "no"}
FORMS = {
    "uuid": "UUID in lower case",
    "date": "`YYYY-MM-DD`",
    "date-time": "date-time with its offset",
    "boolean": "`true` or `false`",
    "text": "text of at most {} characters",
}


def statuses() -> list[str]:
    found: dict[int, dict[str, None]] = {}
    for kind in descendants(GatewayError):
        message = getattr(kind, "message", "")
        if message:
            found.setdefault(kind.status, {})[f"`{message}`"] = None
    found[400] = {
        "`Invalid request: ` and the first problem": None,
        "`Idempotency-Key was used with another request`": None,
    }
    return [f"| {status} | {'; '.join(found[status])} |" for status in sorted(found)]


def settings() -> list[str]:
    return [f"| `{name}` | {default(name)} | {summary} |" for name, summary in names()]


def default(name: str) -> str:
    """A setting's default, where it is plain; the meaning says what else it is."""
    group, _, member = name.rpartition(".")
    info = GROUPS.get(group, Settings).model_fields[member]
    plain = info.default if isinstance(info.default, str | int | float | Path) else None
    if plain is None or plain == "":
        return ""
    return f"`{plain:g}`" if isinstance(plain, float) else f"`{plain}`"


def filters() -> list[str]:
    rows = {}
    for each in OPERATIONS:
        names = sorted(param.name for param in each.params if param.where == "query")
        rows[each.path] = f"| {each.path} | {' '.join(f'`{name}`' for name in names)} |"
    return [
        rows[each.path] for each in sorted(OPERATIONS, key=lambda each: each.path) if each.paged
    ]


# What a converter has of its own depends on no clinic.
MAKES = Converters(ZoneInfo("UTC"), bytes(32))


def converters() -> list[str]:
    rows = []
    for name, (takes, makes, *_) in CONVERTERS.items():
        parameters = " ".join(f"`{each}`" for each in sorted(takes))
        formats = " ".join(
            f"{each}*" if DEFAULTS.get(each) == name else each for each in sorted(makes)
        )
        shape = FieldShape(format=min(makes))
        none = getattr(MAKES.make(Conversion(as_=name, codes={}), shape), "zero", ())
        zero = f" `zero` is {', '.join(none)}." if none else ""
        rows.append(f"| `{name}` | {parameters} | {formats} | {READS[name]}{zero} |")
    return rows


def values() -> list[str]:
    return [
        f"| {resource.name} | `{path}` | {' '.join(f'`{each}`' for each in field.values)} |"
        for resource in RESOURCES
        for path in resource.paths
        if (field := resource.at(path)).values
    ]


READS = {
    "text": "Text, without the blanks round it; blank is no value. `encoding` (cp1252, say) is that"
    " of texts that are no UTF-8; `longest` cuts what a booking writes.",
    "joined text": "Several columns, or one, as one text: `separator` (`, `) between those that"
    " are not blank.",
    "part of text": "One part of a text such as `Last,First`: `part` 1, 2 ... or -1 for the last,"
    " parted by `separator` (`,`).",
    "split text": "Several texts in one, parted by `separator` (`;`).",
    "email": "An e-mail address; what has no @ is unreadable.",
    "code": "A code, by the table `codes: {code: value}`, which it needs. A code that stands for"
    " `null` is known to mean nothing, one that is not in the table is reported; `''` is no code.",
    "boolean": "1 or true, 0 or false; `yes` and `no` list other spellings, such as `[O, -1]`.",
    "number": "A number, spelt 4.5 or 4,5 or 1 234,50.",
    "integer": "A number that is whole.",
    "money": "An amount or a percentage, spelt like a number.",
    "cents": "The same in hundredths.",
    "colour": "`#RRGGBB`, or that as a whole number; `order: bgr` where red is the lowest byte.",
    "local time": "A date and time on the clinic's clock: a time of the database's own, or a text"
    " by `pattern` (`%Y-%m-%d %H:%M:%S`). In two columns: the day and the time of day. `plus` is a"
    " length to be added: minutes, or HH:MM:SS.",
    "utc time": "The same in UTC.",
    "zoned time": "A time with its offset, such as a `timestamptz` or `datetimeoffset`.",
    "epoch": "Seconds since 1970 as a number; `unit: milliseconds` for these.",
    "date": "A day, `YYYY-MM-DD` or by `pattern`, with or without a time.",
    "id": "The key of the resource that the field refers to, or of `of`.",
    "native id": "A UUID of the practice system's own, kept in any case, passed on in lower case.",
    "hashed id": "A key that does not fit into an id; see `key` under Resources.",
}


def metrics() -> list[str]:
    rows = []
    for name, figure in FIGURES.items():
        labels = " ".join(f"`{label}`" for label in figure.labels)
        merged = "each" if "process" in figure.labels else figure.merge
        cells = (f"`{name}`", figure.kind, labels, merged, figure.help)
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def purposes() -> list[str]:
    rows = []
    for part, needed in NEEDED_FOR.items():
        cells = (YES[Purpose.READS in needed], YES[Purpose.BOOKINGS in needed], PARTS[part])
        rows.append(f"| `{part}` | {' | '.join(cells)} |")
    return rows


PARTS = {
    "backend": "The practice system answers, and has all that the mapping names.",
    "store": "The gateway's own database can be read and written.",
    "keys": "The keys were read in the last 5 seconds. Reads stop only after 60 seconds.",
    "audit": "The audit can be written. Reads stop only when too many entries wait to be written.",
    "loop": "The event loop was not blocked for a second or more in the last 5 seconds.",
    "limiter": "Always: if it is down, each process counts its share (`degraded`).",
    "policy": "Always: a valid policy runs, whatever its file contains (`state`).",
    "workers": "With several workers: at least one of them is ready, judged by its own parts.",
}


def samples(figure: str) -> frozenset[str]:
    """The names under which a query finds it."""
    if FIGURES[figure].kind != "histogram":
        return frozenset({figure})
    return frozenset(f"{figure}_{part}" for part in ("bucket", "count", "sum"))


MASKED: dict[str, Any] = {
    "last": "06 12 34 56 78",
    "domain": "anna.martin@example.org",
    "initial": "Martin",
    "year": date(2019, 5, 17),
    "city": "12 rue des Lilas, 75011 Paris",
    "rounded": "47.35",
}


def masks() -> list[str]:
    rows = []
    for kind in KINDS.values():
        mask = read_mask(kind.example)
        assert isinstance(mask, Mask)
        value, formats = MASKED[kind.name], ", ".join(each.name for each in kind.formats)
        bound = f" n is from 1 to {kind.largest:,}." if kind.largest else ""
        says = f"{kind.says[0].upper()}{kind.says[1:]}".replace("{n}", "n").replace("***", "`***`")
        rows.append(
            f"| `{kind.example}` | {formats} | {says}{bound} | `{value}` | `{mask(value)}` |"
        )
    return rows


def kinds(checks: Mapping[str, Check[Any]]) -> list[str]:
    return [
        f"| `{code}` | {kind.severity} | {kind.title} | {_outside_code(kind.help)} |"
        for code, kind in checks.items()
    ]


def _outside_code(text: str) -> str:
    """A sentence whose signs Markdown would take for its own."""
    return re.sub(r"([<>*`|])", r"\\\1", text)


def descendants(kind: type[GatewayError]) -> list[type[GatewayError]]:
    return [each for child in kind.__subclasses__() for each in (child, *descendants(child))]


TABLES = {
    "operations": operations,
    "levels": levels,
    "slots": slots,
    "booking": booking,
    "errors": statuses,
    "filters": filters,
    "settings": settings,
    "metrics": metrics,
    "purposes": purposes,
    "converters": converters,
    "values": values,
    "masks": masks,
    "kinds": partial(kinds, POLICY_CHECKS),
    "kinds of a mapping": partial(kinds, MAPPING_CHECKS),
    "laws": partial(kinds, LAWS),
    "kinds of settings": partial(kinds, SETTINGS_CHECKS),
}


def block(name: str) -> "re.Pattern[str]":
    """Before the rows of a table, the rows, and after them."""
    return re.compile(rf"(<!-- {name} -->\n(?:.*\n){{2}})((?:\|.*\n)*)(<!-- /{name} -->)")


ALARMS = re.compile(r"(<!-- alarms -->\n)(.*)(<!-- /alarms -->)", re.DOTALL)


def alarms() -> str:
    """The section of docs/operations.md: what an alarm means, what to do, what stderr says."""
    parts = []
    for name, alarm in event_table().alarm.items():
        events = event_table().event.values()
        lines = dict.fromkeys(f"`{kind.text}`" for kind in events if kind.alarm == name)
        said = f"On stderr: {'; '.join(lines)}." if lines else ""
        paragraphs = [wrapped(each) for each in (alarm.means, alarm.do, said) if each]
        parts.append("\n\n".join([f"### {name}", *paragraphs]) + "\n")
    return "\n" + "\n".join(parts) + "\n"


def wrapped(text: str) -> str:
    """Lines of the page's width; no span of code is parted."""
    spans = re.sub(r"`[^`]+`", lambda span: span[0].replace(" ", "\0"), " ".join(text.split()))
    lines = textwrap.fill(spans, 110, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


ALERTS = """\
# Alarms for Prometheus. docs/operations.md says of each what it means and what to do. The job is
# called clinic-gateway here, as in:
#
#   scrape_configs:
#     - job_name: clinic-gateway
#       static_configs:
#         - targets: ["127.0.0.1:8081"]
groups:
  - name: clinic-gateway
    rules:
"""


def alerts() -> str:
    """The text of examples/alerts.yaml."""
    return ALERTS + "".join(rule(*each) for each in event_table().alarm.items())


def rule(name: str, alarm: Alarm) -> str:
    expr = alarm.expr.strip()
    if "\n" in expr:
        expr = "|\n" + textwrap.indent(expr, " " * 10)
    lasts = f"        for: {alarm.lasts}\n" if alarm.lasts else ""
    return f"""\
      - alert: {name}
        expr: {expr}
{lasts}        labels: {{severity: {alarm.severity}}}
        annotations:
          summary: {json.dumps(alarm.summary)}
          runbook: docs/operations.md#{name.lower()}
"""


def filled(text: str) -> str:
    """A page's text with the rows of its tables as the code has them."""
    text = ALARMS.sub(lambda found: found[1] + alarms() + found[3], text)
    for name, rows in TABLES.items():
        made = "".join(f"{row}\n" for row in rows())
        text = block(name).sub(lambda found, made=made: found[1] + made + found[3], text)
    return text


if __name__ == "__main__":
    schema = json.dumps(policy_schema(), indent=2)
    (ROOT / "policies.schema.json").write_text(f"{schema}\n", encoding="utf-8")
    for page in PAGES:
        page.write_text(filled(page.read_text()))
    (ROOT / "examples" / "alerts.yaml").write_text(alerts())
    shipped.write()
