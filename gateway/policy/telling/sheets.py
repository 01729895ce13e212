"""Writes the matrix of a policy as CSV and as one HTML page.

The page is for a clinic's data protection officer. It has no script and loads nothing. It prints on
A4, and has a light and a dark form.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path, PurePath

from gateway.assets import templates
from gateway.contract.access import LEVELS
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.masks import Mask
from gateway.policy.policy import Policy
from gateway.policy.telling import wording

COLUMNS = ("resource", "field", "level", "sight", "mask")
# Characters that begin a formula in a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_csv(policy: Policy) -> str:
    """Returns one CSV line for each field at each level; `sight` is whole, masked or hidden."""
    rows: list[Sequence[str]] = [COLUMNS]
    for name, rules in policy.rules.items():
        for path, sights in rules.fields.items():
            for level, sight in zip(LEVELS, sights, strict=True):
                mask = str(sight) if isinstance(sight, Mask) else ""
                rows.append((name, path, level.value, wording.kind_of(sight), mask))
    return csv_of(rows)


def csv_of(rows: Iterable[Sequence[str]]) -> str:
    """Returns CSV (RFC 4180); a cell that looks like a formula becomes text."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\r\n").writerows(
        [f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in row] for row in rows
    )
    return written.getvalue()


def as_page(policy: Policy, today: date) -> str:
    """Returns the HTML page; `today` is the day that it names."""
    page = templates(Path(__file__).parent).get_template("page.html")
    return page.render(
        policy=policy,
        file=wording.printable(PurePath(policy.file).name),
        today=today,
        levels=LEVELS,
        masks=wording.masks_of(policy.rules.values()),
        governed=GOVERNED,
        resources=RESOURCES,
        answered={operation.returns.name for operation in OPERATIONS},
        kind_of=wording.kind_of,
        row_sentences=wording.row_sentences,
        printable=wording.printable,
    )
