"""The page that a clinic hands to its data protection officer: what partners see, in one file.

No script, nothing asked of any other place; it prints on A4 and reads in light and in dark.
"""

from collections.abc import Iterator
from datetime import date
from html import escape
from pathlib import PurePath

from gateway.contract.access import LEVELS
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.policy import Policy
from gateway.policy.rules import ResourceRules, Sight
from gateway.policy.telling.wording import (
    ABOUT_LEVELS,
    kind_of,
    mask_in_words,
    masks_of,
    printable,
    row_sentences,
    sight_in_words,
)

# What a browser may load for the page: nothing but its own style.
_LETS = "default-src 'none'; style-src 'unsafe-inline'"
# Contrast of each text is at least 4.5 to 1, in light and in dark.
_STYLE = """\
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #57606a;
  --line: #c9d1d9; --whole: #0f5132; --whole-back: #e3f4ea; --masked: #7a4100;
  --masked-back: #fdf0dc; --hidden: #57606a; --hidden-back: #f4f5f7; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9aa4af; --line: #3d444d; --whole: #7ee2a8;
    --whole-back: #12301f; --masked: #f2c078; --masked-back: #35270f; --hidden: #9aa4af;
    --hidden-back: #1c2129; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 60rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; break-after: avoid; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 0 1rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left;
  vertical-align: top; }
tbody th { font-weight: 400; }
thead th:nth-child(n+2) { width: 8.5rem; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
.about { display: block; color: var(--soft); font-size: .85em; }
.whole { color: var(--whole); background: var(--whole-back); font-weight: 600; }
.masked { color: var(--masked); background: var(--masked-back); }
.hidden { color: var(--hidden); background: var(--hidden-back); }
@media print {
  @page { size: A4; margin: 14mm; }
  :root { color-scheme: light; --ink: #000; --paper: #fff; --soft: #333; --line: #888;
    --whole: #000; --whole-back: #fff; --masked: #000; --masked-back: #eee; --hidden: #333;
    --hidden-back: #fff; }
  body { padding: 0; max-width: none; font-size: 9.5pt; line-height: 1.35; }
  thead { display: table-header-group; }
  tr, caption { break-inside: avoid; }
  .wide { overflow: visible; }
  thead th:nth-child(n+2) { width: 26mm; }
}
"""


def as_page(policy: Policy, today: date) -> str:
    """The page as HTML; `today` is the day that it names."""
    return "\n".join(_document(policy, today)) + "\n"


def _document(policy: Policy, today: date) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_LETS}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>What partners see: {_file(policy)}</title>"
    yield f"<style>\n{_STYLE}</style>"
    yield "</head>"
    yield "<body>"
    yield "<main>"
    yield "<h1>What partners see</h1>"
    yield from _head(policy, today)
    for resource in GOVERNED:
        yield from _section(resource, policy.rules[resource.name])
    yield from _ungoverned()
    yield "</main>"
    yield "</body>"
    yield "</html>"


def _file(policy: Policy) -> str:
    return escape(printable(PurePath(policy.file).name))


def _head(policy: Policy, today: date) -> Iterator[str]:
    yield "<dl>"
    yield f"<dt>Policy file</dt><dd>{_file(policy)}</dd>"
    yield f"<dt>SHA-256 of the file</dt><dd><code>{policy.hash}</code></dd>"
    yield f'<dt>Date</dt><dd><time datetime="{today}">{today}</time></dd>'
    yield "</dl>"
    yield "<h2>How to read the tables</h2>"
    for told in ABOUT_LEVELS:
        yield f"<p>{escape(told)}</p>"
    masks = masks_of(policy.rules.values())
    if masks:
        yield "<p>Masks in this policy:</p>"
        yield "<ul>"
        for mask in masks:
            yield f"<li><code>{escape(str(mask))}</code> shows {escape(mask_in_words(mask))}</li>"
        yield "</ul>"


def _section(resource: Resource, rules: ResourceRules) -> Iterator[str]:
    yield "<section>"
    yield f'<h2 id="{escape(resource.name)}">{escape(resource.name)}</h2>'
    yield '<div class="wide">'
    yield "<table>"
    yield f"<caption>{escape(resource.summary)} What each level sees of one:</caption>"
    levels = "".join(f'<th scope="col">{level}</th>' for level in LEVELS)
    yield f'<thead><tr><th scope="col">Field</th>{levels}</tr></thead>'
    yield "<tbody>"
    for path in rules.fields:
        summary = resource.at(path).summary
        about = f' <span class="about">{escape(summary)}</span>' if summary else ""
        cells = "".join(_cell(rules.sight(path, level)) for level in LEVELS)
        yield f'<tr><th scope="row"><code>{escape(path)}</code>{about}</th>{cells}</tr>'
    yield "</tbody>"
    yield "</table>"
    yield "</div>"
    yield from _rows(resource, rules)
    yield "</section>"


def _cell(sight: Sight) -> str:
    return f'<td class="{kind_of(sight)}">{escape(sight_in_words(sight))}</td>'


def _rows(resource: Resource, rules: ResourceRules) -> Iterator[str]:
    sentences = row_sentences(resource, rules)
    if not sentences:
        yield f"<p>Each level sees all {escape(resource.name)}.</p>"
        return
    yield "<p>Which records exist for a level; no answer tells of any other:</p>"
    yield "<ul>"
    for level, sentence in sentences:
        yield f"<li>{level} sees {escape(printable(sentence))}.</li>"
    yield "</ul>"


def _ungoverned() -> Iterator[str]:
    """What the policy does not decide, as far as any operation shows it."""
    shown = {each.returns.name for each in OPERATIONS}
    yield "<h2>Always whole</h2>"
    yield "<p>These say nothing of owners or animals; each key that may ask sees them whole.</p>"
    yield "<ul>"
    for each in (each for each in RESOURCES if not each.governed and each.name in shown):
        fields = ", ".join(each.paths)
        yield f"<li>{escape(each.name)} ({escape(fields)}): {escape(each.summary)}</li>"
    yield "</ul>"
