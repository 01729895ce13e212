"""Writes a draft as the text of a mapping file: strict YAML, each guess with its comment."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adapters.base import FieldShape, Shapes
from adapters.draft.guesses import Draft, Guess, RowsGuess, Step

WIDE = 88
TODO = "TODO"
# Plain texts that YAML takes for what they are.
_PLAIN = re.compile(r"[A-Za-z_(][^#\n]*").fullmatch
_SPECIAL = re.compile(r": |:$| #|\s$").search
_WORDS = {"null", "true", "false", "~"}
_IN_FLOW = re.compile(r"[\[\]{},\"'&*!|>%@`:#]").search

HEAD = """\
# A first draft of a mapping, guessed from names, types, keys and a look at some values.
# Each guess says how sure it is; go through it from top to bottom, mend what is wrong,
# and take away what is not there. `clinic-gateway backend check` names each line that needs
# a decision of yours, and what does not fit the database.
version: 2
zone: {zone}  # {said}

resources:
"""
EXAMPLE_HOURS = """\
  # TODO: no table with working hours was found: write them here, or name the table.
  hours:
    - days: [mon-fri]
      times: ["09:00-12:00", "14:00-18:00"]
"""


def write(draft: Draft, shapes: Shapes, zone: str, said: str) -> str:
    """The text of the file; `said` is what is to be known of the zone."""
    parts = [HEAD.format(zone=zone, said=said)]
    for resource, rows in draft.resources.items():
        own = shapes[resource]
        lines = _missing(resource, own) if rows is None else _resource(resource, rows, own)
        parts += [*(f"{line}\n" for line in lines), "\n"]
    parts += [f"{line}\n" for line in [*_diary(draft), "", *_booking(draft)]]
    return "".join(parts)


def _missing(resource: str, shapes: Mapping[str, FieldShape]) -> Iterator[str]:
    """A resource without a table, in comments: the check of the file will miss it."""
    yield f"  # TODO: no table was found for {resource}. Every resource is needed: name its table."
    yield f"  # {resource}:"
    yield "  #   from: ???"
    yield "  #   key: ???"
    yield "  #   fields:"
    for field in _plain(shapes):
        yield f"  #     {field}: ???"


def _plain(shapes: Mapping[str, FieldShape]) -> list[str]:
    return [each for each in shapes if each != "id" and "[]." not in each]


def _resource(resource: str, rows: RowsGuess, shapes: Mapping[str, FieldShape]) -> Iterator[str]:
    yield f"  {resource}:"
    yield from _rows(rows, "    ")
    yield from _fields(rows, _plain(shapes), "    ")
    names = list(dict.fromkeys(e.partition("[].")[0] for e in shapes if "[]." in e))
    found = [name for name in names if name in rows.lists]
    if found:
        yield "    lists:"
    for name in found:
        inner = [e.partition("[].")[2] for e in shapes if e.startswith(f"{name}[].")]
        yield f"      {name}:"
        yield from _rows(rows.lists[name], "        ")
        yield from _fields(rows.lists[name], [e for e in inner if e != "id"], "        ")
    for name in names:
        if name not in rows.lists:
            yield f"    # {TODO}: no table was found for lists: {name}"


def _rows(rows: RowsGuess, indent: str) -> Iterator[str]:
    sure = "sure" if rows.score >= 0.85 else "likely" if rows.score >= 0.6 else "guess"
    others = f"; or {', '.join(rows.others)}" if rows.others else ""
    yield from _member(indent, "from", rows.from_, f"{sure}{others}")
    if rows.where:
        said = "; ".join(why for _, why in rows.where if " has " in why)
        joined = " AND ".join(sql for sql, _ in rows.where)
        yield from _member(indent, "where", joined, f"likely: {said}" if said else "likely")
    if rows.parent is not None:
        yield from _member(indent, "parent", rows.parent.sql, rows.parent.comment)
    if rows.key is not None:
        yield from _guess(indent, "key", rows.key)


def _fields(rows: RowsGuess, names: Iterable[str], indent: str) -> Iterator[str]:
    found = [name for name in names if name in rows.fields]
    yield f"{indent}fields:" if found else f"{indent}fields: {{}}"
    for name in names:
        if name in rows.fields:
            yield from _guess(f"{indent}  ", name, rows.fields[name])
        else:
            yield f"{indent}  # {name}: ???"


def _guess(indent: str, name: str, guess: Guess) -> Iterator[str]:
    sql = list(guess.sql) if isinstance(guess.sql, tuple) else guess.sql
    if not guess.parameters:
        yield from _member(indent, name, sql, guess.comment)
        return
    plain = {key: each for key, each in guess.parameters.items() if key != "codes"}
    if "codes" not in guess.parameters:
        yield from _member(indent, name, {"source": sql, **plain}, guess.comment)
        return
    codes = guess.parameters["codes"]
    guessed = _are_guessed(guess, codes)
    said = guess.comment.replace("sure", "sure of the column", 1) if guessed else guess.comment
    yield f"{indent}{name}:  # {said}"
    yield from _member(f"{indent}  ", "source", sql, "")
    if not codes:
        yield f"{indent}  codes: {{}}  # {TODO}: which codes are there, and what is each?"
        return
    likely = "  # likely, by their words: ask the clinic what each means"
    yield f"{indent}  codes:{likely if guessed else ''}"
    for code, value in codes.items():
        said = f"  # {TODO}: which {name} is this?" if value is None else ""
        if not code:
            said = "  # where there is none"
        yield f"{indent}    {quote(code)}: {'null' if value is None else quote(value)}{said}"


def _are_guessed(guess: Guess, codes: Mapping[str, str | None]) -> bool:
    """Whether the meaning of some code is a guess: of the draft's own, or of words, it is none."""
    if isinstance(guess.sql, str) and guess.sql.startswith("CASE"):
        return False
    return any(value and value.upper() != code.upper() for code, value in codes.items() if code)


def _member(indent: str, name: str, value: Any, comment: str) -> Iterator[str]:
    """`name: value  # comment`; a long text becomes a block, a long group lines of its own."""
    said = f"  # {comment}" if comment else ""
    short = f"{indent}{name}: {inline(value)}"
    if len(short) <= WIDE or not isinstance(value, str | dict):
        yield short + said
    elif isinstance(value, str):
        yield f"{indent}{name}: >-{said}"
        yield from (f"{indent}  {line}" for line in _folded(value, WIDE - len(indent)))
    else:
        yield f"{indent}{name}:{said}"
        for key, each in value.items():
            yield from _member(f"{indent}  ", key, each, "")


def _folded(text: str, width: int) -> Iterator[str]:
    """Lines that a folded block joins to the text again: parted at single blanks outside quotes."""
    line = ""
    for word in re.findall(r"(?:'[^']*'|\"[^\"]*\"|`[^`]*`|[^ '\"`])+|['\"`]", text):
        if line and len(line) + len(word) + 1 > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def inline(value: Any) -> str:
    """The value in one line of YAML."""
    if isinstance(value, dict):
        members = ", ".join(f"{key}: {_flow(each)}" for key, each in value.items())
        return f"{{{members}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    return quote(value)


def _flow(value: Any) -> str:
    if isinstance(value, str) and _IN_FLOW(value):
        return _doubled(value)
    return inline(value)


def quote(value: Any) -> str:
    """A scalar, in quotes where YAML would take it for something else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    plain = _PLAIN(value) and not _SPECIAL(value) and value.lower() not in _WORDS
    return value if plain and value.isprintable() else _doubled(value)


def _doubled(value: str) -> str:
    if '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(e if e.isprintable() else f"\\u{ord(e):04x}" for e in escaped)
    return f'"{shown}"'


def _diary(draft: Draft) -> Iterator[str]:
    yield "diary:"
    yield f"  step: 15       # {TODO}: minutes from one possible start to the next"
    yield f"  duration: 30   # {TODO}: minutes of a booking without a type"
    if draft.hours:
        yield "  hours:"
        for each in draft.hours:
            yield from _listed(each)
    else:
        yield from EXAMPLE_HOURS.splitlines()
    if not draft.busy:
        yield f"  # {TODO}: name what blocks a veterinarian: appointments, absences."
        return
    yield "  busy:"
    for each in draft.busy:
        yield from _listed(each)


def _listed(members: Mapping[str, tuple[Any, str]]) -> Iterator[str]:
    lines = [
        line
        for name, (value, said) in members.items()
        for line in _member("      ", name, value, said)
    ]
    yield f"    - {lines[0].lstrip()}"
    yield from lines[1:]


def _booking(draft: Draft) -> Iterator[str]:
    if not draft.steps:
        yield f"# {TODO}: booking is missing: which rows does an appointment need?"
        return
    yield "booking:"
    yield "  appointment: appointment"
    if draft.reference is not None:
        yield from _member("  ", "reference", draft.reference, "likely: by its name")
    else:
        yield f"  # reference: ???  # {TODO}: is there room for 16 letters and digits of ours?"
    yield "  steps:"
    for step in draft.steps:
        yield from _step(step)


def _step(step: Step) -> Iterator[str]:
    members = {name: (value, said) for name, value, said in step.lines}
    yield from _listed(members)
    if step.values:
        yield "      values:"
    for name, value, said in step.values:
        yield from _member("        ", quote(name), value, said)
