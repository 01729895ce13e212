"""The matrix of a policy for other programs and other pages: CSV and Markdown."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import PurePath

from gateway.contract.access import LEVELS
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import Mask
from gateway.policy.policy import Policy
from gateway.policy.telling.wording import (
    ABOUT_LEVELS,
    kind_of,
    mask_in_words,
    masks_of,
    printable,
    row_sentences,
    sight_in_words,
)

COLUMNS = ("resource", "field", "level", "sight", "mask")
# What a spreadsheet may take for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_in_markdown = re.compile(r"([\\`*_{}\[\]<>#|&!~])").sub


def as_csv(policy: Policy) -> str:
    """A line for each field at each level (RFC 4180); `sight` is whole, masked or hidden."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in _cells(policy):
        writer.writerow(map(plain, row))
    return written.getvalue()


def plain(cell: str) -> str:
    """The cell, as text also where it looks like a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _cells(policy: Policy) -> Iterator[tuple[str, ...]]:
    for name, rules in policy.rules.items():
        for path in rules.fields:
            for level in LEVELS:
                sight = rules.sight(path, level)
                mask = str(sight) if isinstance(sight, Mask) else ""
                yield name, path, level.value, kind_of(sight), mask


def as_markdown(policy: Policy) -> str:
    """A table for each resource, with the row conditions below it."""
    return "\n".join(_markdown(policy)) + "\n"


def _markdown(policy: Policy) -> Iterator[str]:
    yield "# What partners see"
    yield ""
    yield f"Policy {escaped(PurePath(policy.file).name)}, hash {policy.hash}"
    for told in ABOUT_LEVELS:
        yield from ("", escaped(told))
    for resource in GOVERNED:
        rules = policy.rules[resource.name]
        yield from ("", f"## {resource.name}", "", escaped(resource.summary), "")
        yield f"| Field | {' | '.join(LEVELS)} |"
        yield f"|---|{'---|' * len(LEVELS)}"
        for path in rules.fields:
            sights = [escaped(sight_in_words(rules.sight(path, level))) for level in LEVELS]
            yield f"| `{path}` | {' | '.join(sights)} |"
        sentences = row_sentences(resource, rules)
        if sentences:
            yield ""
        for level, sentence in sentences:
            yield f"- {level} sees {escaped(sentence)}."
    masks = masks_of(policy.rules.values())
    if masks:
        yield from ("", "## Masks", "")
    for mask in masks:
        yield f"- {escaped(str(mask))}: {escaped(mask_in_words(mask))}"


def escaped(text: str) -> str:
    """The text as Markdown shows it, in one line."""
    return _in_markdown(r"\\\1", " ".join(printable(text).split()))
