"""Makes the text of a draft as a mapping file: strict YAML, with each guess explained."""

import re
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Any, NamedTuple

from adapters.base import FieldShape, Shapes, inside, lists_in
from adapters.draft.resource import key_of
from adapters.draft.tables import Guess, Rows

SURE, LIKELY = 0.85, 0.6
WIDE = 88
TODO = "TODO"
# Texts that YAML reads as texts without quotes.
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


class Noted(NamedTuple):
    """A value in the draft, with a comment behind it."""

    value: Any
    comment: str


class Members(dict[str, Any]):
    """A group in the draft by names: further groups, values, and lists of them."""

    def remark(self, text: str) -> None:
        """Adds a line that is nothing but a comment."""
        self[f"# {text}"] = ...


def text_of(
    resources: Mapping[str, Rows], rest: Iterable[Members], shapes: Shapes, zone: str, said: str
) -> str:
    """Returns the text of the file; `said` is the comment on the zone."""
    parts = [
        _lines(_resource(name, resources.get(name), own), "  ")
        for name, own in shapes.items()
        if name != "slots"
    ]
    parts += [_lines(group, "") for group in rest]
    return HEAD.format(zone=zone, said=said) + "\n\n".join(map("\n".join, parts)) + "\n"


def _resource(resource: str, rows: Rows | None, shapes: Mapping[str, FieldShape]) -> Members:
    if rows is None:  # in comments, so that the check of the file reports it as missing
        missing, remedy = Members(), "Name it, or leave them out."
        missing.remark(f"{TODO}: no table was found for {resource}. {remedy}")
        fields = (f"    {name}: ???" for name in inside(shapes) if name != "id")
        for line in (f"{resource}:", "  from: ???", "  key: ???", "  fields:", *fields):
            missing.remark(line)
        return missing
    members = _rows(rows)
    if rows.lists:
        members["lists"] = Members({name: _rows(inner) for name, inner in rows.lists.items()})
    for name in lists_in(shapes):
        if name not in rows.lists:
            members.remark(f"{TODO}: no table was found for lists: {name}")
    return Members({resource: members})


def _rows(rows: Rows) -> Members:
    members = Members({"from": Noted(f"{rows.source}{rows.joins}", _comment(rows))})
    fields = Members()
    if rows.where:
        kind = rows.source.profiles[rows.kind] if rows.kind else None
        comment = f"likely: {rows.kind} has {', '.join(kind.codes)}" if kind else "likely"
        members["where"] = Noted(" AND ".join(rows.where), comment)
    if rows.parent is not None:
        members["parent"] = Noted(rows.parent.sql, _comment(rows.parent))
    members |= {"key": _noted("key", key_of(rows.source)), "fields": fields}
    for name in inside(rows.shapes):
        if name in rows.fields:
            fields[name] = _noted(name, rows.fields[name])
        elif name != "id":
            fields.remark(f"{name}: ???")
    return members


def _comment(guess: Guess | Rows) -> str:
    """Returns how sure a guess is, why, and what else it could be."""
    text = "sure" if guess.score >= SURE else "likely" if guess.score >= LIKELY else "guess"
    if isinstance(guess, Guess) and text != "sure":
        text = f"{text}: {guess.why}"
    return f"{text}; or {', '.join(guess.others)}" if guess.others else text


def _noted(name: str, guess: Guess) -> Noted:
    comment = _comment(guess)
    if "codes" not in guess.parameters:
        return Noted(guess.value, comment)
    codes: Mapping[str, str | None] = guess.parameters["codes"]
    # codes that the draft made, or that equal their values, are no guess
    is_own = isinstance(guess.sql, str) and guess.sql.startswith("CASE")
    is_guessed = not is_own and any(
        value and value.upper() != code.upper() for code, value in codes.items() if code
    )
    remark = "" if codes else f"{TODO}: which codes are there, and what is each?"
    if is_guessed:
        comment = comment.replace("sure", "sure of the column", 1)
        remark = "likely, by their words: ask the clinic what each means"
    meanings = Members()
    for code, value in codes.items():
        unknown = f"{TODO}: which {name} is this?" if value is None else ""
        meanings[code] = Noted(value, unknown if code else "where there is none")
    members = Members({"source": guess.value["source"], "codes": Noted(meanings, remark)})
    return Noted(members, comment)


def _lines(members: Members, indent: str) -> Iterator[str]:
    """Yields lines `name: value  # comment`; long texts become blocks, long groups own lines."""
    for name, given in members.items():
        if given is ...:
            yield indent + name
            continue
        value, comment = given if isinstance(given, Noted) else (given, "")
        start, remark = f"{indent}{quote(name)}:", f"  # {comment}" if comment else ""
        if isinstance(value, Members):
            yield f"{start}{' {}' if all(inner is ... for inner in value.values()) else ''}{remark}"
            yield from _lines(value, f"{indent}  ")
        elif isinstance(value, list) and isinstance(value[0], Members):
            yield start + remark
            for item in value:
                first, *more = _lines(item, f"{indent}    ")
                yield from (f"{indent}  - {first.lstrip()}", *more)
        elif len(short := f"{start} {quote(value)}") <= WIDE or not isinstance(value, str | dict):
            yield short + remark
        elif isinstance(value, str):
            yield f"{start} >-{remark}"
            yield from (f"{indent}  {line}" for line in _folded(value, WIDE - len(indent)))
        else:
            yield start + remark
            yield from _lines(Members(value), f"{indent}  ")


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
