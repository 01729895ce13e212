"""The strict YAML reader: no surprises, and every problem at its place."""

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.documents import document
from adapters.documents.document import parse_document, read_document
from adapters.documents.problems import DocumentErrors


def data(text: str) -> object:
    return parse_document(text.encode(), "f.yaml").data


def said(text: str | bytes) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    with pytest.raises(DocumentErrors) as caught:
        parse_document(content, "f.yaml")
    return [str(each) for each in caught.value.problems]


def test_scalars_are_those_of_yaml_1_2() -> None:
    assert data("[no, on, 8:30, 010, 1_000, 0x10, 2026-01-01, ~, true, 1.5, '7']") == [
        "no", "on", "8:30", 10, "1_000", "0x10", "2026-01-01", None, True, 1.5, "7",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: a stands here a second time"),
        ("a: &x [1]\nb: *x\n", "f.yaml:1:4: no text begins with * or & (an alias, an anchor)"),
        (
            "a: !!python/object:os.system x",
            "f.yaml:1:4: no text begins with ! (a tag): take it out",
        ),
        ("a:\n  <<: {b: 1}\n", "f.yaml:2:3: merge keys (<<) are not allowed"),
        ("a:\n\t- b\n", "f.yaml:2:1: a tab stands here; indent with blanks"),
        ("? [a]\n: 1\n", "f.yaml:1:3: a name is one plain word, without brackets"),
        ("", "f.yaml:1:1: the file is empty"),
        ("# nothing\n", "f.yaml:1:1: the file is empty"),
        ("a: [1, 2", "f.yaml:1:9: the file ends before a bracket is closed"),
        ("a: " + "[" * 100_000, "f.yaml:1:1: the file is larger than 64 KiB"),
        ("a: " + "[" * 60_000, "f.yaml:1:35: this is not YAML: nested too deep"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: this is not YAML: expected a single document"),
        ('a:\n  - "x\\UFFFFFFFF"\n', "f.yaml:2:9: this is not YAML: this escape names no letter"),
        ('a: "\\U0011FFFF"\n', "f.yaml:1:7: this is not YAML: this escape names no letter"),
        ('"\\UFFFFFFFF": 1\n', "f.yaml:1:4: this is not YAML: this escape names no letter"),
        ('a: 1\nb: "\\uD83D\\uDE00"\n', "f.yaml:2:4: \\uD83D is half of a letter; write the lette"),
        ('"\\uD83D": 1\n', "f.yaml:1:1: \\uD83D is half of a letter; write the letter itself"),
    ],
)
def test_what_hides_data_is_refused_with_its_place(text: str, problem: str) -> None:
    found = said(text)
    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: \x80", b"a: \x00"])
def test_bytes_that_are_no_text_are_refused(content: bytes) -> None:
    assert said(content)


WHOLE = "put the whole text in quotes, such as \"'Dr ' || v.name\""
INDENTED = "this line is indented otherwise than the lines it belongs to"
COLON = "a colon needs a blank behind it: write name: value"
TWICE = "a second `name: value` stands in one line: give it a line of its own, write {a: b}, or"
DASH = "a dash is missing: the lines above are items of a list, which begin with `- `"
SIGN = f"a text cannot begin with this sign: {WHOLE}"
BEHIND = f"nothing stands behind a quote or bracket that closes: begin a new line, or {WHOLE}"
NOT_UTF_8 = "the letter here is in an old encoding; save the file as UTF-8"
NO_COLON = "this line has no colon: write name: value"
TAKEN = "the quote that opens here is never closed: the next one, in line 2, was taken for its end"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a:\n   b: 1\n  c: 2\nd: 3\n", f"3:3: {INDENTED}"),
        ("a:\n  b: 1\n   c: 2\n", f"3:4: {INDENTED}"),
        ("a:\n  b:\n    x: 1\n   c:\n    x: 1\n", f"4:4: {INDENTED}"),
        ("a:\n  b: 1\nc: 2\n  d: 3\n", f"3:1: {INDENTED}"),
        ("a:\n  b: 1\n\nc: x\n  d: 3\n", f"5:3: {INDENTED}"),
        ("a:\n  - b\n  c\n  - d\n", f"3:3: {DASH}"),
        ("a:\n  - b: x\n  -c: y\n", "3:3: a dash needs a blank behind it"),
        ("# notes\nof May\nb: 2\n", f"2:1: {NO_COLON}"),
        (" a: 1\nb: 2\n", f"2:1: {INDENTED}"),
        ("a:\n  - b\n - c\n", f"3:2: {INDENTED}"),
        ("a:\n  - b: 1\n   c: 2\n", f"3:4: {INDENTED}"),
        ('a:\n  b: "x"\n   c: 2\n', f"3:4: {INDENTED}"),
        ("r:\n  email:o.email\n  phone: p\n", f"2:8: {COLON}"),
        ("r:\n  phone: p\n  email:o.email\n", f"3:8: {COLON}"),
        ("r:\n  phone: p\n  email:o.email\nq:\n  d: 2\n", f"3:8: {COLON}"),
        ("a\nb: 2\n", f"1:1: {NO_COLON}"),
        ("a: b\nc\nd: 2\n", f"2:1: {NO_COLON}"),
        ("animal_id: draft: patientId\n", f"1:17: {TWICE}"),
        ("w:\n  - insert: x\n    a: 1\n  insert: y\n", f"4:3: {DASH}"),
        ("a: 1\n- b\n", "2:1: a list's item stands among names: indent the list under the name"),
        ("a: - b\n", "1:4: the dash of a list's first item stands in a line of its own"),
        ('a: "x\nb: 2\nc: 3\n', "1:4: the quote that opens here is never closed"),
        ("a: [x, 'y]\nb: 2\n", "1:8: the quote that opens here is never closed"),
        ("a: 'x\n---\n", "1:4: the quote that opens here is never closed"),
        ("a: 'x\nb: 'z'\nc: 3\n", f"1:4: {TAKEN}"),
        ('a: "x\nb: "y"\nc: 3\n', f"1:4: {TAKEN}"),
        (
            "a: *reason\n",
            "1:4: no text begins with * or & (an alias, an anchor): write it out,",
        ),
        ("a: *r\n", "no text begins with * or & (an alias, an anchor)"),
        ("a: &\n", "1:4: no text begins with * or & (an alias, an anchor)"),
        ("a: !x y\n", "no text begins with ! (a tag): take it out"),
        ("a: 'Reason: ' || v.reason\n", f"1:15: {SIGN}"),
        ("a: |x|\n", f"1:4: {SIGN}"),
        ("a: > 3\n", f"1:4: {SIGN}"),
        ("a: 'it's'\n", f"1:8: {BEHIND}"),
        ("a: {a: b} c\n", f"1:11: {BEHIND}"),
        ("a: @x\n", f"1:4: {SIGN}"),
        (
            'a: "x\\d"\n',
            "1:7: this is not YAML: while scanning a double-quoted scalar: found unknown escape",
        ),
        (b"a: 1\n# \xc3\xa9 caf\xe9 x\n", f"2:8: {NOT_UTF_8}"),
        (b"a: 1\nb: 12\x00", "2:6: a sign stands here that no editor shows"),
    ],
)
def test_a_slip_of_the_pen_is_named_where_it_was_made(text: str | bytes, problem: str) -> None:
    found = said(text)
    assert len(found) == 1
    assert problem in found[0]


def test_two_doubled_keys_are_both_named() -> None:
    assert len(said("a: 1\na: 2\nb: 1\nb: 2\n")) == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentErrors, match="cannot be read: no such file"):
        read_document(tmp_path / "none.yaml")


TOKENS = (
    *("a", "b: ", ": ", "- ", "\n", "\n  ", "\n    ", "[", "]", "{", "}", ",", '"x"', "'y'", "|"),
    *(">", "|-", ">+\n", "#c", "# c", "&a", "*a", "!t", "?", "? ", "%", "@", "é", "\u2028", "\x85"),
    *("\t", " ", "1", "no", "~", "---", "...", "\ufeff", '"\\u00e9"', '"\\ud800"', "''", '""'),
    *("<<", '"a\n b"', "\r\n", "😀"),
)


def read(content: bytes) -> tuple[object, ...]:
    """All that is made of a file."""
    try:
        found = parse_document(content, "f.yaml", flawed=True)
    except DocumentErrors as error:
        return (error.problems,)
    return found.flaws, found.data, found.marks, found.keys, found.partial


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="this PyYAML was built without libyaml")
@settings(max_examples=600)
@given(st.lists(st.sampled_from(TOKENS), max_size=30).map("".join))
@example("a: |#c\n  d")
@example("{a: }")
@example("--- a")
def test_the_quick_loader_finds_what_the_slow_one_finds(text: str) -> None:
    quickly = read(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "_QuickLoader", None)
        assert read(text.encode()) == quickly


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="this PyYAML was built without libyaml")
def test_the_shipped_files_are_read_by_the_quick_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "_StrictLoader", None)
    for file in ("policies.yaml", "adapters/sample/clinic.yaml"):
        assert read_document(Path(__file__).parents[3] / file).data
