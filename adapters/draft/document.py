"""What a draft is made of, and its text as a mapping file: strict YAML, each guess explained."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.base import FieldShape, Shapes

SURE, LIKELY = 0.85, 0.6
WIDE = 88
TODO = "TODO"
# Plain texts that YAML takes for what they are.
_PLAIN = re.compile(r"[A-Za-z_](?!.*(?:: |:$| #|\s$))[^#\n]*").fullmatch
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

# What stands in the draft by its name, with its comment.
Members = dict[str, tuple[Any, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A value of a row: the SQL (several columns of one value as a tuple) and its converter.

    `column` is the column that decides it, as TABLE.COLUMN; `own` that of the record's own row,
    where another table explains what it holds.
    """

    sql: str | tuple[str, ...]
    score: float
    why: str
    column: str
    others: tuple[str, ...] = ()
    own: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The name of the table in `column`."""
        return self.column.partition(".")[0]

    @property
    def name(self) -> str:
        """The name of the column, without its table's."""
        return self.column.partition(".")[2]

    @property
    def value(self) -> Any:
        """The SQL and the converter, as a mapping has them."""
        sql = list(self.sql) if isinstance(self.sql, tuple) else self.sql
        return {"source": sql, **self.parameters} if self.parameters else sql

    @property
    def comment(self) -> str:
        """How sure it is, why, and what else it could be."""
        word = "sure" if self.score >= SURE else "likely" if self.score >= LIKELY else "guess"
        said = word if word == "sure" else f"{word}: {self.why}"
        return f"{said}; or {', '.join(self.others)}" if self.others else said


@dataclass(slots=True, kw_only=True)
class RowsGuess:
    """Where records come from; `where` holds conditions, each with what is said of it."""

    table: str
    score: float
    from_: str
    where: list[tuple[str, str]] = field(default_factory=list)
    key: Guess
    parent: Guess | None = None
    others: tuple[str, ...] = ()
    fields: dict[str, Guess] = field(default_factory=dict)
    lists: dict[str, "RowsGuess"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteGuess:
    """A step of a booking: its lines besides `values`, and its values."""

    lines: Members
    values: Members = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class MappingGuess:
    """A whole guess; a resource that no table was found for is None."""

    resources: dict[str, RowsGuess | None]
    hours: list[Members] = field(default_factory=list)
    busy: list[Members] = field(default_factory=list)
    writes: list[WriteGuess] = field(default_factory=list)
    reference: str | None = None


def text_of(guess: MappingGuess, shapes: Shapes, zone: str, said: str) -> str:
    """The text of the file; `said` is what is to be known of the zone."""
    lines: list[str] = []
    for resource, rows in guess.resources.items():
        own = shapes[resource]
        lines += _missing(resource, own) if rows is None else _resource(resource, rows, own)
        lines.append("")
    lines += [*_diary(guess), "", *_booking(guess)]
    return HEAD.format(zone=zone, said=said) + "".join(f"{line}\n" for line in lines)


def _missing(resource: str, shapes: Mapping[str, FieldShape]) -> Iterator[str]:
    """A resource without a table, in comments: the check of the file will miss it."""
    said = "Every resource is needed: name its table."
    yield f"  # {TODO}: no table was found for {resource}. {said}"
    yield f"  # {resource}:"
    yield from ("  #   from: ???", "  #   key: ???", "  #   fields:")
    for name in _plain(shapes):
        yield f"  #     {name}: ???"


def _plain(shapes: Iterable[str]) -> list[str]:
    return [name for name in shapes if name != "id" and "[]." not in name]


def _resource(resource: str, rows: RowsGuess, shapes: Mapping[str, FieldShape]) -> Iterator[str]:
    yield f"  {resource}:"
    yield from _rows(rows, _plain(shapes), "    ")
    names = list(dict.fromkeys(path.partition("[].")[0] for path in shapes if "[]." in path))
    if rows.lists:
        yield "    lists:"
    for name in names:
        if name in rows.lists:
            inner = [path.partition("[].")[2] for path in shapes if path.startswith(f"{name}[].")]
            yield f"      {name}:"
            yield from _rows(rows.lists[name], _plain(inner), "        ")
    for name in names:
        if name not in rows.lists:
            yield f"    # {TODO}: no table was found for lists: {name}"


def _rows(rows: RowsGuess, names: list[str], indent: str) -> Iterator[str]:
    sure = "sure" if rows.score >= SURE else "likely" if rows.score >= LIKELY else "guess"
    others = f"; or {', '.join(rows.others)}" if rows.others else ""
    yield from _member(indent, "from", rows.from_, f"{sure}{others}")
    if rows.where:
        said = "; ".join(why for _, why in rows.where if " has " in why)
        joined = " AND ".join(sql for sql, _ in rows.where)
        yield from _member(indent, "where", joined, f"likely: {said}" if said else "likely")
    if rows.parent is not None:
        yield from _member(indent, "parent", rows.parent.sql, rows.parent.comment)
    yield from _guess(indent, "key", rows.key)
    yield f"{indent}fields:" if rows.fields else f"{indent}fields: {{}}"
    for name in names:
        if name in rows.fields:
            yield from _guess(f"{indent}  ", name, rows.fields[name])
        else:
            yield f"{indent}  # {name}: ???"


def _guess(indent: str, name: str, guess: Guess) -> Iterator[str]:
    if "codes" not in guess.parameters:
        yield from _member(indent, name, guess.value, guess.comment)
        return
    codes = guess.parameters["codes"]
    guessed = _are_guessed(guess, codes)
    said = guess.comment.replace("sure", "sure of the column", 1) if guessed else guess.comment
    yield f"{indent}{name}:  # {said}"
    yield from _member(f"{indent}  ", "source", guess.value["source"], "")
    if not codes:
        yield f"{indent}  codes: {{}}  # {TODO}: which codes are there, and what is each?"
        return
    likely = "  # likely, by their words: ask the clinic what each means"
    yield f"{indent}  codes:{likely if guessed else ''}"
    for code, value in codes.items():
        said = f"  # {TODO}: which {name} is this?" if value is None else ""
        said = said if code else "  # where there is none"
        yield f"{indent}    {quote(code)}: {'null' if value is None else quote(value)}{said}"


def _are_guessed(guess: Guess, codes: Mapping[str, str | None]) -> bool:
    """Whether the meaning of some code is a guess: of the draft's own, or of words, it is none."""
    if isinstance(guess.sql, str) and guess.sql.startswith("CASE"):
        return False
    return any(value and value.upper() != code.upper() for code, value in codes.items() if code)


def _member(indent: str, name: str, value: Any, comment: str) -> Iterator[str]:
    """`name: value  # comment`; a long text becomes a block, a long group lines of its own."""
    said = f"  # {comment}" if comment else ""
    short = f"{indent}{name}: {_inline(value)}"
    if len(short) <= WIDE or not isinstance(value, str | dict):
        yield short + said
    elif isinstance(value, str):
        yield f"{indent}{name}: >-{said}"
        yield from (f"{indent}  {line}" for line in _folded(value, WIDE - len(indent)))
    else:
        yield f"{indent}{name}:{said}"
        for key, inner in value.items():
            yield from _member(f"{indent}  ", key, inner, "")


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


def _inline(value: Any) -> str:
    """The value in one line of YAML."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_flow(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    return quote(value)


def _flow(value: Any) -> str:
    return _doubled(value) if isinstance(value, str) and _IN_FLOW(value) else _inline(value)


def quote(value: Any) -> str:
    """A scalar, in quotes where YAML would take it for something else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    is_plain = _PLAIN(value) and value.lower() not in _WORDS and value.isprintable()
    return value if is_plain else _doubled(value)


def _doubled(value: str) -> str:
    if '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(e if e.isprintable() else f"\\u{ord(e):04x}" for e in escaped)
    return f'"{shown}"'


def _diary(guess: MappingGuess) -> Iterator[str]:
    yield "diary:"
    yield f"  step: 15       # {TODO}: minutes from one possible start to the next"
    yield f"  duration: 30   # {TODO}: minutes of a booking without a type"
    if not guess.hours:
        yield from EXAMPLE_HOURS.splitlines()
    if not guess.busy:
        yield f"  # {TODO}: name what blocks a veterinarian: appointments, absences."
    for name, groups in (("hours", guess.hours), ("busy", guess.busy)):
        if groups:
            yield f"  {name}:"
        for members in groups:
            yield from _listed(members)


def _listed(members: Members) -> Iterator[str]:
    lines = [line for name, given in members.items() for line in _member("      ", name, *given)]
    yield f"    - {lines[0].lstrip()}"
    yield from lines[1:]


def _booking(guess: MappingGuess) -> Iterator[str]:
    if not guess.writes:
        yield f"# {TODO}: booking is missing: which rows does an appointment need?"
        return
    yield "booking:"
    yield "  appointment: appointment"
    if guess.reference is not None:
        yield from _member("  ", "reference", guess.reference, "likely: by its name")
    else:
        yield f"  # reference: ???  # {TODO}: is there room for 16 letters and digits of ours?"
    yield "  steps:"
    for step in guess.writes:
        yield from _listed(step.lines)
        if step.values:
            yield "      values:"
        for name, given in step.values.items():
            yield from _member("        ", quote(name), *given)
