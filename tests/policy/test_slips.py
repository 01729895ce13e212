"""What an operator who knows no YAML is told of a slip: where it is, what it is, what to write."""

import ast
import re
from pathlib import Path

import pytest

from adapters.base import Trouble
from adapters.documents.problems import DocumentErrors, Problem, Severity
from gateway.policy.reading import CHECKS
from gateway.policy.reading.document import load_policy, parse_policy
from tests.policies import TEXT
from tests.policy.slips import LIST, SLIPS, TWO_PROBLEMS

ROOT = Path(__file__).resolve().parents[2]


def ignore(trouble: Trouble) -> None:
    pass


def found(content: str | bytes) -> tuple[Problem, ...]:
    content = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(DocumentErrors) as caught:
        parse_policy(content, "policies.yaml", ignore)
    return caught.value.problems


def test_there_is_no_slip_twice() -> None:
    assert len({new for _, new, _, _ in SLIPS}) == len(SLIPS) >= 90


@pytest.mark.parametrize(("old", "new", "code", "text"), SLIPS, ids=[each[1] for each in SLIPS])
def test_a_slip_is_told_at_its_place(old: str, new: str, code: str, text: str) -> None:
    assert TEXT.count(old) == 1
    before, _, after = TEXT.replace(old, new).partition("^")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    text = text.replace("LINE", str(line - 1)).replace("HERE", str(line))
    said = [(each.line, each.column, each.code, each.text) for each in found(before + after)]
    assert (line, column, code, text) in said
    assert len(said) == 1 + bool({code, new} & TWO_PROBLEMS)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty-file"),
        (b"clients", "no-policy"),
        (b"#" * 65537, "too-large"),
        (TEXT.replace("# Who", "# \u00e9").encode("latin-1"), "not-utf8"),
        (b"%YAML 3.0\n---\nversion: 1\n", "not-yaml"),
        (b"a: " + b"[" * 99, "not-yaml"),
        (TEXT[: TEXT.index("\nstock:")].encode(), "missing-resource"),
        (TEXT.replace("clients:\n", "clients: 5\nx:\n").encode(), "bad-resource"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_file_that_is_wrong_as_a_whole_has_its_code(content: bytes, code: str) -> None:
    assert code in [each.code for each in found(content)]


WHOLE = {
    "empty-file", "no-policy", "too-large", "not-utf8", "missing-resource", "unreadable",
}  # fmt: skip


def test_a_file_that_is_not_there_has_its_code(tmp_path: Path) -> None:
    with pytest.raises(DocumentErrors) as caught:
        load_policy(tmp_path / "none.yaml", ignore)
    assert [each.code for each in caught.value.problems] == ["unreadable"]


@pytest.mark.parametrize(
    ("behind", "code"),
    [
        ("BASIC: [id, ", "open-bracket"),
        ("createdAt, updatedAt]\n", "missing-level"),
        ("  FUL", "no-colon"),
        ("invoices:", "bad-resource"),
        ("    - subtotal", "missing-level"),
    ],
)
def test_a_file_that_ends_in_the_middle_is_never_taken(behind: str, code: str) -> None:
    end = TEXT.index(behind, TEXT.index("clients:")) + len(behind)
    assert code in {each.code for each in found(TEXT[:end])}


@pytest.mark.parametrize(
    "content",
    [
        (ROOT / "policies.test.yaml").read_bytes(),
        b"state: .\nbackend:\n  mapping: clinic.yaml\n",
        (ROOT / "adapters" / "sample" / "clinic.yaml").read_bytes(),
    ],
    ids=["cases", "configuration", "mapping"],
)
def test_another_file_of_the_gateway_is_said_once_to_be_no_policy(content: bytes) -> None:
    [problem] = found(content)
    assert problem.code == "no-policy"


@pytest.mark.parametrize("prefix", ["\ufeff", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_marks_of_other_systems_are_no_slips(prefix: str, end: str) -> None:
    content = (prefix + TEXT.replace("\n", end)).encode()
    parse_policy(content, "policies.yaml", ignore)
    wrong = content.replace(b"lastName", b"lastNam")
    line = TEXT[: TEXT.index("lastName")].count("\n") + 1
    assert [(each.line, each.column) for each in found(wrong)] == [(line, 26)]


def test_what_one_slip_causes_is_not_told_beside_it() -> None:
    for new in ("[id; firstName; lastName]", "id, firstName, lastName", "[id, clients.firstName"):
        whole = TEXT.replace(LIST, new if new[-1] != "e" else f"{new}, lastName]")
        assert len(found(whole)) == 1, new


def test_every_kind_of_error_is_produced_here_and_every_code_has_a_kind() -> None:
    produced = {code for _, _, code, _ in SLIPS} | WHOLE
    errors = {code for code, kind in CHECKS.items() if kind.severity is Severity.ERROR}
    # of the file beside a practice system, and beside its cases: tests/cli/test_policy_against.py
    # and tests/cli/test_policy_check.py have them
    assert produced == errors - {"unserved-condition", "failed-case", "bad-cases"}


def test_no_code_is_used_that_has_no_kind() -> None:
    files = [*ROOT.glob("gateway/policy/**/*.py")]
    used = {code for file in files for code in _said(ast.parse(file.read_bytes()))}
    assert used <= set(CHECKS)
    assert {"unknown-field", "unknown-level", "narrower-level"} <= used


SAYING = {"say", "absent", "refuse", "Slip", "Problem"}


def _said(tree: ast.AST) -> set[str]:
    """The codes that stand as plain texts in what says a problem, or are assigned or returned."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in SAYING:
                found += node.args
            case ast.Assign(value=ast.Tuple() | ast.Constant()):
                is_code = "code" in ast.unparse(node.targets[0])
                found += getattr(node.value, "elts", [node.value]) if is_code else []
            case ast.Return(value=ast.Tuple(elts=elements)):
                found += elements
    texts = {each.value for each in found if isinstance(each, ast.Constant)}
    is_code = re.compile("[a-z]+(-[a-z]+)+").fullmatch
    return {each for each in texts if isinstance(each, str) and is_code(each)}
