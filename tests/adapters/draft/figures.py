"""How much of a draft is right: its records beside those of a mapping by a person who knows.

`python -m tests.adapters.draft.figures` prints the share for each family of schemas.
"""

import asyncio
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adapters.base import Query, Record
from adapters.documents.document import parse_document
from adapters.draft import draft_mapping
from gateway.backend import shapes
from tests.adapters.clinic import NOW, connect
from tests.adapters.draft.schemas.families import FAMILIES, make, truth

# The share of the records in which a field must be the same. A record that one side lacks differs.
ENOUGH = 0.98


@dataclass(slots=True)
class Figures:
    """Fields by what became of them; `sure` are those that the draft says are proven."""

    right: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)

    @property
    def wrong_but_sure(self) -> set[str]:
        return self.wrong & self.sure


async def figures_of(family: str, folder: Path) -> Figures:
    """Compares the draft of a family with its truth."""
    database = make(family, folder)
    text, guesses = await draft_mapping(
        f"sqlite:///{database}", shapes(), "Europe/Berlin", "", accept=True
    )
    mapping = parse_document(text.encode(), "draft").data
    drafted = await records_of(database, text)
    wanted = await records_of(database, f"version: 2\nzone: Europe/Berlin\n{truth(family)}")
    figures = Figures()
    for resource, shape in shapes().items():
        pair = drafted.get(resource, {}), wanted.get(resource, {})
        sure = proven(guesses.get(resource))
        for name in shape:
            if resource == "slots" or name == "id" or name.endswith("[].id"):
                continue
            is_open = has_open_code(mapping, resource, name)
            verdict = compared(*pair, name, is_open=is_open)
            if verdict:
                getattr(figures, verdict).add(f"{resource}.{name}")
                figures.sure |= {f"{resource}.{name}"} if name in sure else set()
    return figures


def compared(
    ours: dict[str, Record], theirs: dict[str, Record], name: str, *, is_open: bool
) -> str:
    """Tells what became of a field; nothing where neither the practice nor the draft has it."""
    known, given = has(theirs, name), has(ours, name) and not is_open
    if not given:
        return "open" if known else ""
    if not known:  # a status in English is the draft's own
        return "" if name == "displayStatus" else "wrong"
    same = sum(
        values(ours[key], name) == values(theirs[key], name) for key in ours.keys() & theirs.keys()
    )
    return "right" if same >= ENOUGH * len(ours.keys() | theirs.keys()) else "wrong"


def proven(guess: Any) -> set[str]:
    if guess is None:
        return set()
    names = {name for name, each in guess["fields"].items() if is_sure(each)}
    for part, inner in guess.get("lists", {}).items():
        names |= {f"{part}[].{name}" for name, each in inner["fields"].items() if is_sure(each)}
    return names


def is_sure(guess: Any) -> bool:
    return bool(guess["proof"]) if "proof" in guess else bool(guess["score"] >= 0.85)


def has_open_code(mapping: dict[str, Any], resource: str, name: str) -> bool:
    """Whether the draft itself says that a code's meaning is not known."""
    fields = (mapping["resources"] or {}).get(resource, {}).get("fields", {})
    given = fields.get(name)
    return isinstance(given, dict) and None in given.get("codes", {}).values()


def values(record: Record, name: str) -> Any:
    part, is_list, inner = name.partition("[].")
    if name == "address":  # in any order
        return sorted(re.findall(r"\w+", record.get(name) or ""))
    if not is_list:
        return record.get(name)
    return sorted((str(each.get("id")), str(each.get(inner))) for each in record.get(part) or ())


def has(records: dict[str, Record], name: str) -> bool:
    part, is_list, inner = name.partition("[].")
    if is_list:
        return any(
            each.get(inner) for record in records.values() for each in record.get(part) or ()
        )
    return any(record.get(name) not in (None, []) for record in records.values())


async def records_of(database: Path, mapping: str) -> dict[str, dict[str, Record]]:
    """All records by resource and id."""
    names = parse_document(mapping.encode(), "mapping").data["resources"] or {}
    alone = {"version": 2, "zone": "Europe/Berlin", "resources": names}
    adapter = connect(database, mapping=json.dumps(alone))
    found: dict[str, dict[str, Record]] = {}
    try:
        for resource in names:
            query = Query(resource=resource, now=NOW, limit=5000)
            records = (await adapter.read_many(query)).records
            found[resource] = {str(each["id"]): each for each in records}
    finally:
        await adapter.aclose()
    return found


def table(all_figures: dict[str, Figures]) -> list[str]:
    """The shares of each family as lines."""
    names = ("fields", "right", "wrong", "open", "sure", "wrong but sure")
    lines = ["  ".join([f"{'family':8}", *names])]
    for family, each in all_figures.items():
        number = len(each.right | each.wrong | each.open)
        parts = (each.right, each.wrong, each.open, each.sure)
        shares = [
            f"{len(part) / number:{len(name)}.0%}"
            for part, name in zip(parts, names[1:], strict=False)
        ]
        last = f"{len(each.wrong_but_sure):{len(names[-1])}}"
        lines.append("  ".join([f"{family:8}", f"{number:{len(names[0])}}", *shares, last]))
    return lines


def main(families: list[str]) -> None:
    """Prints the table; with families named, what became of their fields too."""
    found = {}
    for family in families or FAMILIES:
        with TemporaryDirectory() as folder:
            found[family] = asyncio.run(figures_of(family, Path(folder)))
    lines = table(found)
    for each in found.values() if families else ():
        lines += [f"wrong: {sorted(each.wrong)}", f"open: {sorted(each.open)}"]
        lines += [f"only likely: {sorted(each.right - each.sure)}"]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
