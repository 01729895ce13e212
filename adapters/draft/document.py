"""What a draft is made of, and its text as a mapping file: strict YAML, each guess explained."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

from adapters.base import FieldShape, Shapes

SURE, LIKELY = 0.85, 0.6
WIDE = 88
TODO = "TODO"
# Plain texts that YAML takes for what they are.
_PLAIN = re.compile(r"[A-Za-z_](?!.*(?:: |:$| #|\s$))[^#\n]*").fullmatch
_WORDS = {"null", "true", "false", "~"}
_QUOTED = re.compile("'[^']*'|\"[^\"]*\"|`[^`]*`")
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


@dataclass(frozen=True, slots=True)
class Guess:
    """A value of a row: the SQL (several columns of one value as a tuple) and its converter.

    `column` is the column that decides it, as TABLE.COLUMN; `own` that of the record's own row,
    where another table explains what it holds.
    """

    sql: str | tuple[str, ...]
    score: float
    why: str
    column: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    own: str = ""

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
        lines += [*_resource(resource, rows, shapes[resource]), ""]
    lines += [*_diary(guess), "", *_booking(guess)]
    return HEAD.format(zone=zone, said=said) + "".join(f"{line}\n" for line in lines)


def _resource(
    resource: str, rows: RowsGuess | None, shapes: Mapping[str, FieldShape]
) -> Iterator[str]:
    own = [name for name in shapes if name != "id" and "[]." not in name]
    if rows is None:  # in comments: the check of the file will miss it
        said = "Every resource is needed: name its table."
        yield f"  # {TODO}: no table was found for {resource}. {said}"
        yield from (f"  # {resource}:", "  #   from: ???", "  #   key: ???", "  #   fields:")
        yield from (f"  #     {name}: ???" for name in own)
        return
    yield f"  {resource}:"
    yield from _rows(rows, own, "    ")
    lists: dict[str, list[str]] = {}
    for path in shapes:
        name, _, inner = path.partition("[].")
        if inner:
            lists.setdefault(name, []).extend([inner] * (inner != "id"))
    if rows.lists:
        yield "    lists:"
    for name in sorted(lists, key=lambda name: name not in rows.lists):
        if name in rows.lists:
            yield f"      {name}:"
            yield from _rows(rows.lists[name], lists[name], "        ")
        else:
            yield f"    # {TODO}: no table was found for lists: {name}"


def _rows(rows: RowsGuess, names: list[str], indent: str) -> Iterator[str]:
    yield from _member(indent, "from", rows.from_, _comment(rows))
    if rows.where:
        said = "; ".join(why for _, why in rows.where if " has " in why)
        joined = " AND ".join(sql for sql, _ in rows.where)
        yield from _member(indent, "where", joined, f"likely: {said}" if said else "likely")
    if rows.parent is not None:
        yield from _member(indent, "parent", rows.parent.sql, _comment(rows.parent))
    yield from _guess(indent, "key", rows.key)
    yield f"{indent}fields:" if rows.fields else f"{indent}fields: {{}}"
    for name in names:
        if name in rows.fields:
            yield from _guess(f"{indent}  ", name, rows.fields[name])
        else:
            yield f"{indent}  # {name}: ???"


def _comment(guess: Guess | RowsGuess) -> str:
    """How sure it is, why, and what else it could be."""
    said = "sure" if guess.score >= SURE else "likely" if guess.score >= LIKELY else "guess"
    if isinstance(guess, Guess) and said != "sure":
        said = f"{said}: {guess.why}"
    return f"{said}; or {', '.join(guess.others)}" if guess.others else said


def _guess(indent: str, name: str, guess: Guess) -> Iterator[str]:
    comment = _comment(guess)
    if "codes" not in guess.parameters:
        yield from _member(indent, name, guess.value, comment)
        return
    codes: Mapping[str, str | None] = guess.parameters["codes"]
    # codes of the draft's own, or that are the words themselves, are no guess
    is_own = isinstance(guess.sql, str) and guess.sql.startswith("CASE")
    is_guessed = not is_own and any(
        value and value.upper() != code.upper() for code, value in codes.items() if code
    )
    said = comment.replace("sure", "sure of the column", 1) if is_guessed else comment
    yield f"{indent}{name}:  # {said}"
    yield from _member(f"{indent}  ", "source", guess.value["source"], "")
    if not codes:
        yield f"{indent}  codes: {{}}  # {TODO}: which codes are there, and what is each?"
        return
    likely = "  # likely, by their words: ask the clinic what each means"
    yield f"{indent}  codes:{likely if is_guessed else ''}"
    for code, value in codes.items():
        said = f"  # {TODO}: which {name} is this?" if value is None else ""
        said = said if code else "  # where there is none"
        yield f"{indent}    {quote(code)}: {'null' if value is None else quote(value)}{said}"


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
    kept = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", "\0"), text)
    for line in wrap(kept, width, break_long_words=False, break_on_hyphens=False):
        yield line.replace("\0", " ")


def _inline(value: Any, *, in_flow: bool = False) -> str:
    """The value in one line of YAML."""
    if isinstance(value, dict):
        members = [f"{key}: {_inline(inner, in_flow=True)}" for key, inner in value.items()]
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_inline(inner, in_flow=True) for inner in value)}]"
    return quote(value, in_flow=in_flow)


def quote(value: Any, *, in_flow: bool = False) -> str:
    """A scalar, in quotes where YAML would take it for something else."""
    if not isinstance(value, str):
        return str(value).lower()
    is_plain = _PLAIN(value) and value.lower() not in _WORDS and value.isprintable()
    if is_plain and not (in_flow and _IN_FLOW(value)):
        return value
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
