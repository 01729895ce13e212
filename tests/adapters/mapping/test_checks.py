"""Every problem with a mapping is of a kind, and each kind comes up in a mapping of the tests."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web

from adapters.documents.problems import DocumentErrors, Problem, Severity
from adapters.documents.yaml_errors import FILE_CHECKS
from adapters.mapping.checker import CHECKS
from adapters.mapping.loader import load_mapping
from adapters.sql.engines.base import ErrorKind
from adapters.sql.engines.sqlite import SqliteSpeech
from gateway.backend import check_serves, shapes
from gateway.settings import BackendSettings, Settings
from tests.adapters.clinic import connect
from tests.adapters.mapping.test_mapping import LANGUAGE, MISTAKES, SAMPLE
from tests.adapters.rest import cloud
from tests.adapters.rest.test_rest_mapping import WRONG

ERRORS = {code for code, kind in CHECKS.items() if kind.severity is Severity.ERROR}
# What only a practice system, or a policy beside it, gives reason to say.
BESIDE = {
    "no-lock",
    "not-in-database",
    "missing-right",
    "unanswered",
    "unserved-operation",
    "copied",
}
STEP = "  appointment: rdv\n"
UNSAFE = STEP + "  without_transactions: [RDV, RDV_JOURNAL, COMPTEURS]\n"


def of_sql(folder: Path, text: str) -> Sequence[Problem]:
    (folder / "clinic.yaml").write_text(text)
    with pytest.raises(DocumentErrors) as caught:
        load_mapping(folder / "clinic.yaml", shapes(), "sql")
    return caught.value.problems


def of_rest(folder: Path, url: str, right: str, wrong: str) -> Sequence[Problem]:
    with pytest.raises(DocumentErrors) as caught:
        cloud.connect(url, folder, cloud.replaced((right, wrong)))
    return caught.value.problems


def test_every_error_of_a_file_has_a_code_and_every_code_comes_up(tmp_path: Path) -> None:
    changes = [*MISTAKES, *LANGUAGE, (STEP, UNSAFE, "")]
    found = [*of_sql(tmp_path, cloud.MAPPING.read_text())]
    for right, wrong, _ in changes:
        found += of_sql(tmp_path, SAMPLE.replace(right, wrong, 1))
    for right, wrong, _ in WRONG.values():
        found += of_rest(tmp_path, "ftp://127.0.0.1", right, wrong)
    found += of_rest(tmp_path, "http://127.0.0.1:1", "{secret: password}", "{secret: token}")
    assert {
        each.code for each in found
    } - FILE_CHECKS.keys() == ERRORS - FILE_CHECKS.keys() - BESIDE


async def test_what_a_database_says_has_a_code(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SAMPLE.replace("firstName: p.PRENOM", "firstName: p.PRENOMM", 1)
    for kind, code in (
        (ErrorKind.STATEMENT, "not-in-database"),
        (ErrorKind.DENIED, "missing-right"),
    ):
        monkeypatch.setattr(SqliteSpeech, "kind", lambda speech, error, kind=kind: kind)
        adapter = connect(database, mapping=text)
        with pytest.raises(DocumentErrors) as caught:
            await adapter.check()
        assert [each.code for each in caught.value.problems] == [code]
        await adapter.aclose()


async def test_what_a_row_says_of_a_key_is_a_warning(database: Path) -> None:
    adapter = connect(database, mapping=SAMPLE.replace("key: t.ID_TYPE", "key: t.LIBELLE", 1))
    assert [each.code for each in await adapter.check()] == ["unfit-key"]
    await adapter.aclose()


async def test_what_an_operation_needs_has_a_code(database: Path) -> None:
    text = SAMPLE.replace("      isLow: COALESCE(a.QUANTITE <= a.SEUIL, 0)\n", "")
    adapter = connect(database, mapping=text)
    settings = Settings(backend=BackendSettings(mapping=Path(adapter.document.file)))
    with pytest.raises(DocumentErrors) as caught:
        check_serves(adapter, settings)
    assert {each.code for each in caught.value.problems} == {"unserved-operation"}
    await adapter.aclose()


async def answers_with_nothing(request: web.Request) -> web.Response:
    return web.json_response({})


@pytest.mark.parametrize(
    ("change", "is_empty", "code"),
    [
        (("location: shelf", "location: shelves"), False, "path-to-nothing"),
        (("get: /owners\n", "get: /nobody\n"), False, "unanswered"),
        (("get: /owners\n", "get: /owners\n"), True, "doubtful-answer"),
    ],
)
async def test_what_calls_say_has_a_code(
    tmp_path: Path, change: tuple[str, str], is_empty: bool, code: str
) -> None:
    kept = cloud.new_cloud()
    if is_empty:
        kept.owners = answers_with_nothing  # type: ignore[method-assign]
    async with cloud.listening(kept) as url:
        adapter = cloud.connect(url, tmp_path, cloud.replaced(change))
        try:
            found = await adapter.check()
        except DocumentErrors as error:
            found = error.problems
        assert [each.code for each in found] == [code]
        assert (CHECKS[code].severity is Severity.ERROR) == (code == "unanswered")
        await adapter.aclose()
