"""Writes what was learnt of a booking as YAML, with a comment on each column."""

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from adapters.doctor.sql.derivation import TODO, Derived
from adapters.doctor.sql.learning import APPOINTMENT, LearnedGroup, LearnedStep, Lesson
from adapters.examination import counted

WIDE = 88
_PLAIN = re.compile(r"[A-Za-z_][\w ./-]*(?<! )").fullmatch
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
_ORDER = ("for", "if", "where", "column", "key", "name")


def yaml_of(lesson: Lesson) -> str:
    """Returns the text of `booking:`."""
    many = counted(lesson.examples, "appointment")
    lines = list(_comment(f"Learnt from {many} of the desk: {', '.join(lesson.keys)}.", ""))
    for doubt in lesson.doubts:
        lines += _comment(doubt, "")
    lines += _comment("The rows of each, and how they were found:", "")
    for table, why, counts in lesson.found:
        lines += _comment(f"  {table}: {' '.join(map(str, counts))} ({why})", "")
    for remark in lesson.remarks:
        lines += _comment(remark, "")
    lines += ["booking:", f"  appointment: {APPOINTMENT}", "  steps:"]
    for step in lesson.steps:
        lines += _step(step)
    return "\n".join(lines) + "\n"


def _step(step: LearnedStep) -> Iterator[str]:
    if remark := f"{step.doubt} {step.remark}".strip():
        yield from _comment(remark, "    ")
    yield f"    - {step.kind}: {scalar(step.table)}"
    for word in _ORDER:
        if word in step.words:
            yield f"      {word}: {scalar(step.words[word])}"
    if step.kind in ("insert", "update"):
        yield from _written_by(step)


def _written_by(step: LearnedStep) -> Iterator[str]:
    if step.groups:
        yield "      each:"
    for group in step.groups:
        yield from _group(group)
    yield "      values:"
    for name, derived in step.values.items():
        yield from _value(name, derived)
    if step.nulls:
        yield from _comment(f"null in all: {', '.join(step.nulls)}", "        ")


def _group(group: LearnedGroup) -> Iterator[str]:
    said: dict[str, list[str]] = {}
    for name, derived in group.values.items():
        said.setdefault(_said(derived), []).append(name)
    how = "; ".join(f"{', '.join(names)}: {text}" for text, names in said.items())
    yield from _comment(f"{group.doubt} {how}".strip(), "        ")
    row = {name: derived.value for name, derived in group.values.items()}
    more = {} if group.condition is None else {"if": group.condition}
    yield f"        - {_written(row | more)}"


def _said(derived: Derived) -> str:
    """Returns how a value is known, behind a TODO where it is not sure."""
    return derived.how if derived.is_sure and derived.is_told else f"{TODO}: {derived.how}"


def _value(name: str, derived: Derived) -> Iterator[str]:
    if not derived.is_told and derived.value is None:
        yield from _comment(f"{TODO}: {name}: {derived.how}", "        ")
        return
    line = f"        {scalar(name)}: {_written(derived.value)}"
    comment = _said(derived)
    if not comment:
        yield line
    elif len(line) + len(comment) + 4 <= WIDE:
        yield f"{line}  # {comment}"
    else:
        yield from _comment(comment, "        ")
        yield line


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_written(it)}" for name, it in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    """Returns a value as YAML has it."""
    if isinstance(value, str):
        is_plain = _PLAIN(value) and value.lower() not in _WORDS
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _comment(text: str, indent: str) -> Iterator[str]:
    lead = " " * (len(text) - len(text.lstrip()))
    for line in wrap(text.strip(), WIDE - len(indent) - 2 - len(lead)):
        yield f"{indent}# {lead}{line}"


def data_of(lesson: Lesson) -> dict[str, Any]:
    """Returns what was found and derived, for programs."""
    steps = [
        {
            "kind": step.kind,
            "table": step.table,
            **step.words,
            "each": [
                {"values": _data(group.values), "if": group.condition, "remark": group.doubt}
                for group in step.groups
            ],
            "values": _data(step.values),
            "null": step.nulls,
            "remark": f"{step.doubt} {step.remark}".strip(),
        }
        for step in lesson.steps
    ]
    found = [{"table": table, "how": why, "rows": rows} for table, why, rows in lesson.found]
    remarks = lesson.doubts + lesson.remarks
    return {"appointments": lesson.keys, "found": found, "steps": steps, "remarks": remarks}


def _data(values: Mapping[str, Derived]) -> dict[str, Any]:
    return {
        name: {"value": it.value, "how": it.how, "sure": it.is_sure and it.is_told}
        for name, it in values.items()
    }
