"""A policy file either is sound or is refused with everything that is wrong with it."""

import hashlib
from pathlib import Path

import pytest

from adapters.base import Trouble
from adapters.documents.problems import DocumentErrors
from gateway.contract.access import AccessLevel
from gateway.policy.policy import Policy
from gateway.policy.reading.document import load_policy, parse_policy
from tests.policies import TEXT, moved, never

SHIPPED = Path(__file__).resolve().parents[2] / "policies.yaml"


def ignore(trouble: Trouble) -> None:
    pass


def parse(text: str | bytes) -> Policy:
    content = text if isinstance(text, bytes) else text.encode()
    return parse_policy(content, "policies.yaml", ignore)


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(DocumentErrors) as caught:
        parse(text)
    return [str(each) for each in caught.value.problems]


def changed(old: str, new: str) -> str:
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)


def test_all_that_is_wrong_is_said_at_once_in_the_order_of_the_file() -> None:
    content = f"""\
version: 3
clients:
  BASIC: [id, fristName, lastName]
  STANDARD: [phone, email, createdAt]
  FULL: [address, phone]
  {never("clients")}
patient:
  BASIC: []
invoices: [id]
"""
    said = problems(content)
    assert [each for each in said if " is missing; add it with its lists " in each] == [
        f"policies.yaml:1:1: {name} is missing; add it with its lists BASIC, STANDARD and FULL"
        for name in ("appointments", "consultations", "stock")
    ]
    assert [each for each in said if " is missing; add it with its lists " not in each] == [
        "policies.yaml:1:10: version must be 1",
        "policies.yaml:2:1: clients.updatedAt is missing; add it to the first level that may see"
        " it (BASIC, STANDARD or FULL), or to never",
        "policies.yaml:3:15: clients has no field 'fristName' (did you mean firstName?)",
        "policies.yaml:5:19: clients.phone stands already in line 4; keep one of the two",
        "policies.yaml:7:1: patient is not a resource (did you mean patients?)",
        "policies.yaml:9:11: invoices must hold the lists BASIC, STANDARD and FULL, each in a line"
        " below it",
    ]


@pytest.mark.parametrize(
    ("old", "new", "doubled"),
    [
        ("  FULL: [address]\n", "  FULL: []\n  FULL: [address]\n", "3: FULL"),
        ("  FULL: [address]\n", "  FULL: [address]\n  FULL: []\n", "3: FULL"),
        ("clients:\n", "clients: {BASIC: [id]}\nclients:\n", "1: clients"),
        ("version: 1\n", "version: 1\nversion: 1\n", "1: version"),
    ],
)
def test_a_name_twice_hides_nothing_else_and_makes_nothing_else_wrong(
    old: str, new: str, doubled: str
) -> None:
    line = TEXT[: TEXT.index(old)].count("\n") + 1
    text = changed(old, new)
    assert problems(text) == [
        f"policies.yaml:{line + 1}:{doubled} stands here a second time (first in line {line})"
    ]
    also = problems(text.replace("[reference, unit,", "[refrence, unit,"))
    assert len(also) == 2
    assert "stock has no field 'refrence' (did you mean reference?)" in also[1]


def test_what_is_wrong_inside_a_doubled_name_is_said_too() -> None:
    text = changed("stock:\n", "clients: {BASIC: [id], BASIC: []}\nstock:\n")
    said = [each.partition(": ")[2] for each in problems(text)]
    assert [each.partition(" (")[0] for each in said] == [
        "clients stands here a second time",
        "BASIC stands here a second time",
    ]


def test_after_a_key_that_is_no_name_the_rest_is_checked() -> None:
    text = changed("version: 1\n", "<<: {version: 1}\n").replace("[address]", "[adress]")
    assert [each.partition(": ")[2] for each in problems(text)] == [
        "merge keys (<<) are not allowed; write it out",
        "clients has no field 'adress' (did you mean address?)",
    ]


@pytest.mark.parametrize("path", ["lines", "lines[]"])
def test_a_list_of_objects_is_not_named_as_a_whole(path: str) -> None:
    said = problems(changed('"lines[].id"]', f'"lines[].id", "{path}"]'))
    assert len(said) == 1
    assert f'invoices.{path} is a list of objects; name its members: "lines[].id", ' in said[0]


def test_a_level_that_is_left_out_is_asked_for() -> None:
    said = problems(changed("  FULL: [address]\n", ""))
    assert len(said) == 2
    assert said[0].endswith("clients has no list FULL; write FULL: [] for none")
    assert "clients.address is missing; add it" in said[1]


def test_never_may_be_left_out_and_hides_what_it_names() -> None:
    without = TEXT.replace("  never: []\n", "")
    assert parse(without).rules == parse(TEXT).rules
    hidden = moved("clients.phone", "never", moved("clients.address", "never"))
    assert {"phone", "address"}.isdisjoint(
        parse(hidden).redactor("clients", AccessLevel.FULL).visible
    )


@pytest.mark.parametrize("word", ["no", "on", "yes", "off", "y", "NO"])
def test_a_word_that_looks_like_a_boolean_stays_a_word(word: str) -> None:
    said = problems(changed("[address]", f"[address, {word}]"))
    assert len(said) == 1
    assert f"clients has no field '{word}'" in said[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "1:1: the file is empty"),
        (b"# only a comment\n", "1:1: the file is empty"),
        (
            b"[]",
            "1:1: a policy begins with version: 1, then names each resource; is this its file?",
        ),
        (
            b"policy",
            "1:1: a policy begins with version: 1, then names each resource; is this its file?",
        ),
        (
            b"a: &a [*a]",
            "1:4: no text begins with * or & (an alias, an anchor): write it out, or put it in"
            " quotes",
        ),
        (
            b"a: " + b"[" * 5000,
            "1:35: this is not YAML: nested too deep: one pair of brackets is enough for a list",
        ),
        (b"#" * (64 * 1024 + 1), "1:1: the file is larger than 64 KiB; nothing was read"),
    ],
    ids=["empty", "comment", "list", "word", "alias", "deep", "large"],
)
def test_a_file_that_is_no_policy_at_all_says_so(content: bytes, said: str) -> None:
    assert problems(content) == [f"policies.yaml:{said}"]


def test_a_file_of_the_largest_size_is_read() -> None:
    padded = TEXT + "#" * (64 * 1024 - len(TEXT.encode()))
    assert parse(padded).rules == parse(TEXT).rules


def test_bytes_that_are_no_text_are_refused() -> None:
    line = TEXT.count("\n") + 1
    said = f"{line}:1: the letter here is in an old encoding; save the file as UTF-8"
    assert problems(TEXT.encode() + b"\xff\n") == [f"policies.yaml:{said}"]


def test_a_file_cut_off_anywhere_before_its_last_field_is_refused() -> None:
    content = TEXT.encode()
    for end in range(content.index(b"version:"), content.rindex(b"purchasePrice"), 23):
        assert problems(content[:end]), end


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    with pytest.raises(DocumentErrors) as caught:
        load_policy(missing, ignore)
    assert str(caught.value) == f"{missing}: cannot be read: no such file or directory"


def test_the_hash_is_that_of_the_bytes_of_the_file() -> None:
    policy = load_policy(SHIPPED, ignore)
    assert policy.hash == hashlib.sha256(SHIPPED.read_bytes()).hexdigest()
    assert policy.file == str(SHIPPED)
