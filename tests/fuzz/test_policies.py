"""Generated policies, keys and records against a model of ten lines; files read, or refused.

FUZZ_CASES says how many cases there are of each, in `make fuzz`; the suite tries some.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.base import Trouble
from adapters.documents.problems import DocumentErrors
from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import GOVERNED
from gateway.keys.key import Key
from gateway.policy.masks import Mask, fitting, read_mask
from gateway.policy.policy import Policy
from gateway.policy.reading.document import parse_policy
from gateway.policy.values import value_type
from tests.policy.decisions import closed
from tests.policy.records import records

CASES = int(os.environ.get("FUZZ_CASES", "100"))
SHIPPED = (Path(__file__).resolve().parents[2] / "policies.yaml").read_bytes()
NAMES = [level.value for level in LEVELS]
BY_NAME = {resource.name: resource for resource in GOVERNED}

scopes = st.dictionaries(st.sampled_from([*BY_NAME]), st.sampled_from(LEVELS))

Data = dict[str, Any]


# The model: a policy as plain YAML data, a key, a record: what is answered, None for no record.
def answer(policy: Data, resource: str, key: Data, record: Data) -> Data | None:
    level = key["scopes"].get(resource, key["level"])
    mine, levels = policy[resource], NAMES[: NAMES.index(level) + 1]
    only = mine.get("only", {})
    only = only if not NAMES & only.keys() else only.get(level, {})
    if not all(lets_be(record.get(name), wanted) for name, wanted in only.items()):
        return None
    items = [item for each in levels for item in mine[each]]
    masks = dict(pair for item in items if isinstance(item, dict) for pair in item.items())
    seen = dict.fromkeys(masks, "mask") | {path: "" for path in items if isinstance(path, str)}
    return shown(BY_NAME[resource].fields, record, seen, masks, "")


def lets_be(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return value is not None and value not in wanted["not"]
    return value in wanted


def shown(
    fields: Iterable[Field],
    record: Data,
    seen: Mapping[str, str],
    masks: Mapping[str, str],
    at: str,
) -> Data:
    found: Data = {}
    for field in fields:
        path, value = at + field.name, record.get(field.name)
        if field.fields and any(each.startswith(f"{path}[].") for each in seen):
            found[field.name] = value and [
                shown(field.fields, item, seen, masks, f"{path}[].") for item in value
            ]
        elif path in seen:
            hides = seen[path] and value is not None
            found[field.name] = masked(field, masks[path], value) if hides else value
    return found


def masked(field: Field, mask: str, value: Any) -> Any:
    made = read_mask(mask)
    assert isinstance(made, Mask)
    return json.loads(msgspec.json.encode(made(msgspec.convert(value, value_type(field)))))


def ignore(trouble: Trouble) -> None:
    pass


def parsed(content: bytes) -> Policy:
    return parse_policy(content, "policies.yaml", ignore)


@st.composite
def listed(draw: st.DrawFn, resource: Resource) -> Data:
    """A resource's part of a file, as its author might write it."""
    lists: Data = {name: [] for name in (*NAMES, "never")}
    for path in draw(st.permutations(resource.paths)):
        # conditions are about fields that BASIC sees
        likely = NAMES[:1] * 4 if "[]" not in path and closed(resource.at(path)) else []
        at = draw(st.sampled_from([*likely, *NAMES, "never"]))
        lists[at].append(path)
        lower = NAMES[: NAMES.index(at)] if at in NAMES else NAMES
        kinds = fitting(resource.at(path))
        if kinds and lower and draw(st.integers(0, 3)) == 0:
            mask = draw(st.sampled_from(kinds)).example
            lists[draw(st.sampled_from(lower))].append({path: mask})
    only = draw(conditions(resource, lists["BASIC"]))
    return lists | ({"only": only} if only else {})


@st.composite
def conditions(draw: st.DrawFn, resource: Resource, whole: list[Any]) -> Data:
    """Conditions on fields of few values, that BASIC sees: for all levels, or widening."""
    usable = [
        path
        for path in whole
        if isinstance(path, str) and "[]" not in path and closed(resource.at(path))
    ]
    if not usable or draw(st.integers(0, 3)) == 0:
        return {}
    name = draw(st.sampled_from(sorted(usable)))
    values = sorted(closed(resource.at(name)))
    basic = draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
    more = draw(st.lists(st.sampled_from(values), unique=True))
    standard = list(dict.fromkeys([*basic, *more]))
    rest = [each for each in values if each not in standard]
    if rest and draw(st.booleans()):  # the same by what is not let be
        widening: list[Any] = [{"not": [*rest, *basic[1:]]}, {"not": rest}]
    else:
        widening = [basic, standard]
    if draw(st.booleans()):
        return {name: widening[0]}
    levels = NAMES[: draw(st.integers(1, 2))]
    return {level: {name: each} for level, each in zip(levels, widening, strict=False)}


@st.composite
def files(draw: st.DrawFn) -> tuple[Data, bytes, Resource]:
    """A policy as data and as a file: one resource at random, the others as they are shipped."""
    data: Data = yaml.load(SHIPPED, Loader=yaml.BaseLoader) | {"version": 1}
    resource = draw(st.sampled_from(GOVERNED))
    data[resource.name] = draw(listed(resource))
    flow = draw(st.sampled_from([None, True, False]))
    text = yaml.safe_dump(data, sort_keys=draw(st.booleans()), default_flow_style=flow)
    return data, text.encode(), resource


@pytest.mark.long
@pytest.mark.fuzz
@settings(max_examples=CASES)
@given(files(), st.sampled_from(LEVELS), scopes, st.data())
def test_every_key_gets_what_the_model_says(
    made: tuple[Data, bytes, Resource],
    level: AccessLevel,
    scopes: dict[str, AccessLevel],
    data: st.DataObject,
) -> None:
    told, content, drawn = made
    policy = parsed(content)
    key = Key(
        name="A key",
        permissions=frozenset(Permission),
        level=level,
        scopes=scopes,
        created_at=datetime.now(UTC),
    )
    resource = data.draw(st.just(drawn) | st.sampled_from(GOVERNED))
    record = data.draw(records(resource.fields))
    redactor = policy.redactor(resource.name, key.level_for(resource.name))
    expected = answer(told, resource.name, {"level": level, "scopes": scopes}, record)
    assert redactor.admits(record) is (expected is not None)
    if expected is not None:
        assert json.loads(redactor.one(record)) == expected
        assert json.loads(redactor.many([record])[0]) == [expected]


def matrix(policy: Policy) -> dict[tuple[str, str, str], str]:
    """What each level sees of each field, as the compiled policy answers."""
    cells = {}
    for resource in GOVERNED:
        for level in LEVELS:
            masks = policy.redactor(resource.name, level).masks
            for path in resource.paths:
                whole = path in policy.redactor(resource.name, level).visible
                cells[resource.name, level.value, path] = (
                    "whole" if whole else str(masks.get(path, "hidden"))
                )
    return cells


def matrix_of(data: Data) -> dict[tuple[str, str, str], str]:
    """The same, read off the plain data."""
    cells = {}
    for resource in GOVERNED:
        for number, level in enumerate(NAMES):
            items = [item for each in NAMES[: number + 1] for item in data[resource.name][each]]
            masks = {
                path: mask
                for item in items
                if isinstance(item, dict)
                for path, mask in item.items()
            }
            for path in resource.paths:
                cell = "whole" if path in items else masks.get(path, "hidden")
                cells[resource.name, level, path] = cell.replace(" ", "")
    return cells


PIECES = [
    b"\n", b" ", b"  ", b":", b": ", b"- ", b"[", b"]", b"{", b"}", b",", b"#", b"'", b'"', b"&a",
    b"*a", b"!!set ", b"<<: ", b"\t", b"\r\n", b"\xff", b"\xef\xbb\xbf", b"\x00", b"|", b">", b"?",
    b"---\n", b"...\n", b"no", b"null", b"true", b"1", b"1e9", b"never", b"only", b"BASIC",
    b"STANDARD:", b"FULL", b"phone", b"{phone: last(2)}", b"clients:", b"lines[].id", b"version: 1",
    b"only: {status: [ACTIVE]}", b"%YAML 1.1\n", b"[" * 40, b"{a: " * 40, b"\\u", "é".encode(),
]  # fmt: skip


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """The shipped file, or another sound one, after some slips; or anything at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=2000))
    content = bytearray(SHIPPED if draw(st.booleans()) else draw(files())[1])
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([0, 0, 1, 2, 8, 40, 400])))
        content[start:end] = draw(st.sampled_from(PIECES) | st.binary(max_size=6))
    return bytes(content)


@pytest.mark.long
@pytest.mark.fuzz
@settings(max_examples=CASES * 2)
@given(contents())
def test_a_file_is_read_as_it_says_or_refused_at_its_lines(content: bytes) -> None:
    began = time.process_time()
    try:
        policy = parsed(content)
    except DocumentErrors as error:
        lines = content.count(b"\n") + content.count(b"\r") + 2
        for problem in error.problems:
            assert problem.file == "policies.yaml"
            assert 1 <= problem.line <= lines
            assert problem.column >= 1
            assert problem.text
            assert problem.code
    else:
        assert matrix(policy) == matrix_of(yaml.load(content, Loader=yaml.BaseLoader))
    assert time.process_time() - began < 2
