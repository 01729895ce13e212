"""Makes the text of a draft as a mapping file: strict YAML, with each guess explained."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from textwrap import wrap
from typing import Any, NamedTuple

from adapters.base import FieldShape, Shapes, inside, lists_in
from adapters.draft.resource import key_of
from adapters.draft.sources import Guess
from adapters.draft.tables import Rows

LIKELY = 0.6
WIDE = 88
TODO = "TODO"
# Texts that YAML reads as texts without quotes.
_PLAIN = re.compile(r"[A-Za-z_](?!.*(?:: |:$| #|\s$))[^#\n]*").fullmatch
_WORDS = {"null", "true", "false", "~"}
_QUOTED = re.compile("'[^']*'|\"[^\"]*\"|`[^`]*`")
_IN_FLOW = re.compile(r"[\[\]{},\"'&*!|>%@`:#]").search

HEAD = """\
# A draft of a mapping, made by looking at the database. The comment of a line says whether the data
# prove it, somebody has confirmed it, or it is only likely. What nobody has confirmed stands in
# comments of its own: where it is right, take the comment sign and the word behind it away.
# `clinic-gateway backend check` names each line that needs a decision of yours.
version: 2
zone: {zone}  # {said}

resources:
"""


class Noted(NamedTuple):
    """A value in the draft, with a comment behind it."""

    value: Any
    comment: str


class _Line(str):
    """A line of comment, of which there may be several alike."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class Members(dict[str, Any]):
    """A group in the draft by names: further groups, values, and lists of them."""

    def remark(self, text: str) -> None:
        """Adds a line that is nothing but a comment."""
        self[_Line(f"# {text}")] = ...

    def open(self, members: "Members", said: str = "") -> None:
        """Adds a group as lines of comment, for somebody to decide."""
        first, *more = lines_of(members, "")
        # what is nothing but such a remark stays one
        first = first.removeprefix(f"# {TODO}: ")
        self.remark(f"{TODO}: {first}{f'  # {said}' if said else ''}")
        for line in more:
            self.remark(line)


def text_of(
    resources: Mapping[str, Rows], rest: Iterable[Members], shapes: Shapes, zone: str, said: str
) -> str:
    """Returns the text of the file; `said` is the comment on the zone."""
    written = {name for name, rows in resources.items() if rows.is_written}
    parts = [
        lines_of(_resource(name, resources.get(name), own, written), "  ")
        for name, own in shapes.items()
        if name != "slots"
    ]
    parts += [lines_of(group, "") for group in rest]
    head = HEAD.format(zone=zone, said=said)
    if not written:
        head = head.replace("resources:", "resources: {}  # once there is one, take {} away")
    return head + "\n\n".join(map("\n".join, parts)) + "\n"


def _resource(
    resource: str, rows: Rows | None, shapes: Mapping[str, FieldShape], written: Set[str]
) -> Members:
    if rows is None:
        missing = Members()
        missing.remark(f"{TODO}: no table was found for {resource}. Name it, or leave them out.")
        return missing
    members = _rows(rows, written)
    for name in lists_in(shapes):
        inner = rows.lists.get(name)
        if inner is None:
            members.remark(f"{TODO}: no table was found for lists: {name}")
        elif inner.is_written:
            members.setdefault("lists", Members())[name] = _rows(inner, written)
        else:
            members.open(Members({name: _rows(inner, written)}))
    whole = Members({resource: members})
    if rows.is_written:
        return whole
    left = Members()
    left.open(whole, "left out until somebody confirms the table")
    return left


def _rows(rows: Rows, written: Set[str]) -> Members:
    members = Members({"from": Noted(f"{rows.source}{rows.joins}", _comment(rows))})
    fields, shapes = Members(), inside(rows.shapes)
    left = list[tuple[Members, str]]()
    if rows.where:
        members["where"] = Noted(" AND ".join(rows.where), _said_of(rows))
    if rows.parent is not None:
        members["parent"] = Noted(rows.parent.sql, _comment(rows.parent))
    members |= {"key": _noted("key", key_of(rows.source)), "fields": fields}
    for name in filter(rows.fields.__contains__, shapes):
        guess, refers = rows.fields[name], shapes[name].refers
        if refers and refers not in written:
            left.append((Members({name: guess.value}), f"{refers} are left out"))
        elif guess.is_written or not rows.is_written:  # all of what is left out is a comment
            fields[name] = _noted(name, guess)
        else:
            left.append((Members({name: _noted(name, guess)}), ""))
    for member, why in left:
        fields.open(member, why)
    missing = [name for name in shapes if name not in rows.fields and name != "id"]
    if missing:
        fields.remark(f"no column was found for {', '.join(missing)}")
    return members


def _said_of(rows: Rows) -> str:
    """Returns where the conditions on the rows come from."""
    if rows.kind:
        return f"{rows.kind} has {', '.join(rows.source.all_codes)}"
    return "; ".join(rows.told_by) or "likely: hides what is inactive"


def _comment(guess: Guess | Rows) -> str:
    """Returns how sure a guess is, why, and what else it could be."""
    if guess.proof:
        return f"sure: {guess.proof}"
    if guess.standing == "confirmed":
        return "confirmed"
    text = "likely" if guess.score >= LIKELY else "a guess"
    if isinstance(guess, Guess):
        text = f"{text}: {guess.why}"
    return f"{text}; or {', '.join(guess.others)}" if guess.others else text


def _noted(name: str, guess: Guess) -> Noted:
    comment = _comment(guess)
    if "codes" not in guess.parameters:
        return Noted(guess.value, comment)
    codes: Mapping[str, str | None] = guess.parameters["codes"]
    # codes that the draft made, or that equal their values, are no guess
    is_own = isinstance(guess.sql, str) and guess.sql.startswith("CASE")
    is_guessed = not (is_own or guess.proof or guess.standing == "confirmed") and any(
        value and value.upper() != code.upper() for code, value in codes.items() if code
    )
    remark = "" if codes else f"{TODO}: which codes are there, and what is each?"
    if is_guessed:
        remark = "likely, by their words: ask the clinic what each means"
    meanings = Members()
    for code, value in codes.items():
        unknown = f"{TODO}: which {name} is this?" if value is None else ""
        meanings[code] = Noted(value, unknown if code else "where there is none")
    members = Members({"source": guess.value["source"], "codes": Noted(meanings, remark)})
    return Noted(members, comment)


def lines_of(members: Members, indent: str = "") -> Iterator[str]:
    """Yields lines `name: value  # comment`; long texts become blocks, long groups own lines."""
    for name, given in members.items():
        if given is ...:
            yield indent + name
            continue
        value, comment = given if isinstance(given, Noted) else (given, "")
        start, remark = f"{indent}{quote(name)}:", f"  # {comment}" if comment else ""
        if isinstance(value, Members):
            yield f"{start}{' {}' if all(inner is ... for inner in value.values()) else ''}{remark}"
            yield from lines_of(value, f"{indent}  ")
        elif isinstance(value, list) and isinstance(value[0], Members):
            yield start + remark
            for item in value:
                first, *more = lines_of(item, f"{indent}    ")
                yield from (f"{indent}  - {first.lstrip()}", *more)
        elif len(short := f"{start} {quote(value)}") <= WIDE or not isinstance(value, str | dict):
            yield short + remark
        elif isinstance(value, str):
            yield f"{start} >-{remark}"
            yield from (f"{indent}  {line}" for line in _folded(value, WIDE - len(indent)))
        else:
            yield start + remark
            yield from lines_of(Members(value), f"{indent}  ")


def _folded(text: str, width: int) -> Iterator[str]:
    """Yields the lines of a folded block, which break at single blanks outside quotes."""
    kept = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", "\0"), text)
    for line in wrap(kept, width, break_long_words=False, break_on_hyphens=False):
        yield line.replace("\0", " ")


def quote(value: Any, *, in_flow: bool = False) -> str:
    """Returns the value in one line; a text in quotes where YAML would read something else."""
    if isinstance(value, dict):
        members = [f"{key}: {quote(inner, in_flow=True)}" for key, inner in value.items()]
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(quote(inner, in_flow=True) for inner in value)}]"
    if not isinstance(value, str):
        return "null" if value is None else str(value).lower()
    is_plain = _PLAIN(value) and value.lower() not in _WORDS and value.isprintable()
    if is_plain and not (in_flow and _IN_FLOW(value)):
        return value
    if '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(e if e.isprintable() else f"\\u{ord(e):04x}" for e in escaped)
    return f'"{shown}"'
