"""The audit in the panel: what partners were shown, who has seen a record, what was done here."""

import ast
import asyncio
import csv
import io
import json
from datetime import UTC, datetime, timedelta
from getpass import getuser
from html import unescape
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from click.testing import CliRunner
from markupsafe import escape

from gateway.admin.views import PAGES, audit
from gateway.admin.words import FOLDER, words
from gateway.administrators.administrator import AdministratorStore, Role
from gateway.administrators.log import DONE, FAILED, LOOKED, Deed, DeedLog
from gateway.audit import buffer as buffering
from gateway.audit.entries import AuditSecret
from gateway.cli import main
from gateway.inquiries import audit as inquiring
from gateway.keys.key import Key
from gateway.policy.running.versions import APPROVED, DECLINED
from tests.admin.manager import Manager, Page, after, manager_of
from tests.audit.mutations import edit_a_member
from tests.conftest import RunningGateway
from tests.partner import Partner
from tests.waiting import until

NASTY = "<script>alert(1)</script>\"'&{{7*7}}"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
LONG = 30.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffering, "EVERY", 0.02)


@pytest.fixture
async def manager(running_gateway: RunningGateway, session: aiohttp.ClientSession) -> Manager:
    return await manager_of(running_gateway, session)


async def called(partner: Partner, *paths: str) -> None:
    """Calls, whose entries are on disk then."""
    before = len(partner.gateway.entries())
    for path in paths:
        await partner.get(path)
    await until(lambda: len(partner.gateway.entries()) >= before + len(paths))


async def rename(gateway: RunningGateway, partner: Partner, name: str) -> Key:
    return await gateway.gateway.keys.update(partner._key_id, name=name)


async def who_has_seen(manager: Manager, record: str) -> Page:
    """The page of a client's readers, once the index has every entry."""
    at = f"/audit/who?resource=clients&id={record}"
    return await after(manager, at, "newer entries are being taken in")


async def test_each_call_is_shown_and_found_by_all_that_it_is(
    manager: Manager, partner: Partner, running_gateway: RunningGateway
) -> None:
    ids = await partner.ids()
    await rename(running_gateway, partner, NASTY)
    client = f"/clients/{ids['clients']}"
    await called(partner, client, "/clients?limit=20", f"/clients/{UNKNOWN}")
    page = await manager.get("/audit")
    assert page.plain.count("get_client") >= 3  # twice in the table, once among the choices
    assert "and 17 more" in page.plain
    assert NASTY in page.plain
    assert NASTY not in page.text
    assert f'href="/keys/{partner._key_id}"' in page.text
    policy = running_gateway.gateway.keeper.policy().short_hash
    assert f'href="/policy/versions/{policy}"' in page.text
    assert f"/audit/who?resource=clients&amp;id={ids['clients']}" in page.text
    [entry] = [each for each in running_gateway.entries() if each["outcome"] == "refused"]
    for query in (
        "outcome=refused", f"request={entry['requestId']}",
        f"key={partner._key_id}&operation=get_client&outcome=refused",
        f"key={partner.secret[:8]}&outcome=refused", f"key={quote('<SCRIPT>')}&outcome=refused",
    ):  # fmt: skip
        [row] = rows(await manager.get(f"/audit?{query}"))
        assert "NotFound" in row
        assert entry["requestId"] in row
    of_record = rows(await manager.get(f"/audit?record={ids['clients'].upper()}"))
    assert len(of_record) in {1, 2}  # the list may have it too
    assert rows(await manager.get("/audit?to=2026-01-01T00:00")) == []
    assert rows(await manager.get("/audit?operation=list_stock")) == []


def rows(page: Page) -> list[str]:
    """What stands in the lines of the table."""
    assert page.status == 200, page.plain
    return page.text.split("<tr>")[2:]


def next_of(page: Page) -> str:
    """Where its link to what is older leads."""
    return unescape(page.text.split('rel="next" href="')[1].split('"')[0])


async def test_what_cannot_be_looked_for_is_said_and_a_secret_is_not_shown_again(
    manager: Manager, partner: Partner
) -> None:
    page = await manager.get(f"/audit?key={partner.secret}&from=yesterday&operation=nothing")
    assert page.status == 422
    assert partner.secret not in page.text
    assert partner.secret[:8] in page.text
    assert page.text.count("aria-invalid") == 2
    assert "No key has that name" in (await manager.get("/audit?key=Nobody+of+ours")).plain


async def test_where_the_time_is_over_the_page_says_how_far_it_came_and_goes_on(
    manager: Manager, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiring, "BUDGET", 0.0)
    monkeypatch.setattr("gateway.audit.search.LEAST", 600)
    monkeypatch.setattr("gateway.audit.search.MOST", 600)
    await called(partner, f"/clients/{UNKNOWN}", *["/appointments/types"] * 9)
    page = await manager.get("/audit?outcome=refused")
    assert "Searched back to" in page.plain
    assert rows(page) == []
    for _ in range(50):
        page = await manager.get(next_of(page))
        if len(page.text.split("<tr>")) > 2:
            break
    assert "NotFound" in page.plain


async def test_a_page_of_many_leads_to_older_ones_and_nothing_comes_twice(
    manager: Manager, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.admin.views.audit.PAGE", 4)
    await called(partner, *["/appointments/types"] * 10)
    wanted = {each["requestId"] for each in partner.gateway.entries()}
    page, found = await manager.get("/audit"), list[str]()
    while True:
        found += [each for each in wanted if each in page.text]
        if 'rel="next"' not in page.text:
            break
        await called(partner, "/appointments/types")
        page = await manager.get(next_of(page))
    assert sorted(found) == sorted(wanted)


async def test_administrators_who_looked_at_a_record_have_seen_it_too(
    manager: Manager, running_gateway: RunningGateway
) -> None:
    client, at = (await running_gateway.ids())["clients"], datetime(2026, 1, 5, 23, 59, tzinfo=UTC)
    log = DeedLog(running_gateway.gateway.store)
    page = await who_has_seen(manager, client)
    assert "No administrator has looked at it" in page.plain
    for day, resource, outcome in (
        (0, "clients", DONE), (2, "clients", DONE), (1, "clients", FAILED), (1, "patients", DONE)
    ):  # fmt: skip
        details = {"resource": resource}
        looked = Deed(
            at=at + timedelta(days=day),
            who=NASTY,
            deed=LOOKED,
            subject=client,
            outcome=outcome,
            details=details,
        )
        await log.add(looked)
    form = {"level": "FULL", "resource": "clients", "id": client}
    await manager.fill("/preview", form, "/preview/record")
    page = await who_has_seen(manager, client.upper())
    assert "Looked at in this panel by 2 administrators" in page.plain
    assert f"{NASTY}: 2 times, first" in page.plain
    assert "Claire: 1 time, first" in page.plain
    assert NASTY not in page.text
    config = str(running_gateway.folder / "gateway.yaml")
    command = ["audit", "who-read", "clients", client, "--until", "2026-01-05", "--config", config]
    done = await asyncio.to_thread(CliRunner().invoke, main, [*command, "--json"])
    seen = "2026-01-05T23:59:00Z"
    assert json.loads(done.output)["administrators"] == [
        {"name": NASTY, "times": 1, "first": seen, "last": seen}
    ]
    done = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert f"{NASTY} looked at it in the panel: 1 time, first {seen}" in done.output


async def test_who_has_seen_a_client_is_what_the_command_says(
    manager: Manager, partner: Partner, running_gateway: RunningGateway
) -> None:
    ids = await partner.ids()
    basic = await partner.with_key(level="BASIC")
    await rename(running_gateway, basic, NASTY)
    await called(partner, *[f"/clients/{ids['clients']}"] * 3)
    await called(basic, f"/clients/{ids['clients']}")
    page = await who_has_seen(manager, ids["clients"])
    config = str(running_gateway.folder / "gateway.yaml")
    command = ["audit", "who-read", "clients", ids["clients"], "--json", "--config", config]
    done = await asyncio.to_thread(CliRunner().invoke, main, command)
    told = json.loads(done.output)
    assert told["complete"] is True
    assert "The index has every entry." in page.plain
    parts = page.text.split('<article class="reader">')[1:]
    assert len(parts) == len(told["keys"]) == 2
    for part, key in zip(parts, told["keys"], strict=True):
        assert key["id"] in part
        assert len(key["calls"]) == part.count('class="seen"')
        for call in key["calls"]:
            shown = words("en")("who.times", call["times"])
            assert f"{call['operation']} at level {call['level']}</strong>: {shown}," in part
            assert f"/policy/versions/{call['policy']}" in part
            assert part.count('<span title="') == len(call["fields"])
            assert all(f'<span title="{field}">' in part for field in call["fields"])
    assert NASTY in page.plain
    assert NASTY not in page.text
    assert "no key has been shown it" in (await who_has_seen(manager, UNKNOWN)).plain
    odd = await manager.get(f"/audit/who?resource=clients&id={quote(NASTY)}")
    assert "has not the form of an id" in odd.plain
    assert NASTY not in odd.text


async def test_what_the_index_lacks_is_said(
    manager: Manager, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await partner.ids()
    await called(partner, f"/clients/{ids['clients']}")
    at = f"/audit/who?resource=clients&id={ids['clients']}"

    async def never(self: Any) -> int:
        await asyncio.sleep(LONG)
        return 0

    with monkeypatch.context() as patched:
        patched.setattr("gateway.audit.index.Index.catch_up", never)
        patched.setattr("gateway.admin.views.audit.WITHIN", 0.01)
        page = await manager.get(at)
        await until(lambda: partner.gateway.entries() != [])
        page = await manager.get(at)
    assert "the newer entries are being taken in" in page.plain
    page = await after(manager, at, "the newer entries are being taken in")
    assert "shown to 1 key" in page.plain


async def test_a_file_for_spreadsheets_holds_what_is_filtered_and_no_formula(
    manager: Manager, partner: Partner, running_gateway: RunningGateway
) -> None:
    formula = '=cmd|"/c calc",1'
    await rename(running_gateway, partner, formula)
    await called(partner, "/clients?limit=5", f"/clients/{UNKNOWN}")
    auditor = await manager_of(
        running_gateway, manager.session, role=Role.AUDITOR, name="Denis", language="fr"
    )
    page = await auditor.fill("/audit", {"outcome": "answered"}, "/audit/export")
    assert page.status == 200
    assert page.headers["Content-Disposition"].startswith('attachment; filename="audit-')
    assert page.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.text.startswith("\ufeffHeure,Clé,")
    [head, line] = csv.reader(io.StringIO(page.text.removeprefix("\ufeff"), newline=""))
    row = dict(zip(audit.COLUMNS, line, strict=True))
    assert len(head) == len(line)
    assert row["key"] == f"'{formula}"
    assert row["outcome"] == "répondu"
    assert row["records"] == "5"
    assert len(row["record_ids"].split()) == 5
    for _ in range(100):  # its last line comes to rest after the file has been sent
        files = (running_gateway.folder / "audit").glob("*")
        lines = [line for file in files for line in read(file)]
        deeds = [each for each in lines if each.get("deed") == "audit exported"]
        if len(deeds) == 2:
            break
        await asyncio.sleep(0.05)
    assert [(each["who"], each["result"]) for each in deeds] == [
        ("Denis", "begun"), ("Denis", "done"),
    ]  # fmt: skip
    assert deeds[-1]["details"] == {"by_outcome": "answered", "lines": 1}


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines() if line.startswith(b"{")]


async def test_a_file_that_would_be_too_long_says_where_it_was_cut_off(
    manager: Manager, partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST", 5)
    monkeypatch.setattr(audit, "PIECE", 2)
    await called(partner, *["/appointments/types"] * 7)
    page = await manager.fill("/audit", {}, "/audit/export")
    lines = page.text.splitlines()
    assert len(lines) == 1 + 5 + 1
    assert "Cut off here: a file has 5 lines" in lines[-1]


async def test_a_verification_finds_a_line_that_is_not_as_it_was_and_says_so_loudly(
    manager: Manager, partner: Partner, running_gateway: RunningGateway
) -> None:
    await called(partner, *["/appointments/types"] * 3)
    operator = await manager_of(
        running_gateway, manager.session, role=Role.OPERATOR, name="Olga", language="fr"
    )
    assert "Aucune vérification" in (await operator.get("/audit")).plain
    assert (await operator.fill("/audit", {}, "/audit/verify")).status == 303
    page = await after(operator, "/audit", "Vérification en cours")
    assert "Intact" in page.plain
    assert "par Olga" in page.plain
    assert 'role="alert"' not in page.text
    audit = running_gateway.folder / "audit"
    [path] = [each for each in audit.glob("*.jsonl") if b'"FULL"' in each.read_bytes()]
    files = {path.name: path.read_bytes()}
    edit_a_member(files, Random(1), AuditSecret(b""))
    # in its place: the gateway goes on writing to it
    with path.open("r+b") as file:
        file.write(files[path.name])
    await manager.fill("/audit", {}, "/audit/verify")
    page = await after(manager, "/audit", "Being verified")
    assert "The audit is not as it was written: 1 place is broken" in page.plain
    assert page.text.index('role="alert"') < page.text.index("<table")
    assert f"{path}:" in page.plain
    assert "is not as it was written" in page.plain
    part = await manager.get("/audit/verification", **{"HX-Request": "true"})
    assert 'role="alert"' in part.text
    assert "<html" not in part.text
    assert "hx-get" not in part.text  # it asks again only while somebody looks


def test_what_asks_again_by_itself_keeps_nobody_signed_in() -> None:
    asks = [
        line.split('hx-get="')[1].split('"')[0]
        for file in FOLDER.parent.glob("templates/**/*.html")
        for line in file.read_text("utf-8").splitlines()
        if "every " in line and "hx-get" in line
    ]
    assert {"/audit/verification", "/directory/checked"} <= set(asks)
    assert {each.path for each in PAGES if each.polled} >= set(asks)


async def test_what_administrators_did_is_told_in_the_readers_language(
    manager: Manager, running_gateway: RunningGateway
) -> None:
    french = await manager_of(running_gateway, manager.session, name="Éléonore", language="fr")
    page = await french.get("/audit/deeds")
    assert "connexion" in page.plain
    assert "signed in" not in page.plain
    assert "Claire" in page.plain
    assert "Éléonore" not in (await french.get("/audit/deeds?who=Claire")).text.split("<table")[1]
    assert "Écrivez le nom entier" in (await french.get("/audit/deeds?who=Nobody")).plain
    older = await french.get("/audit/deeds?before=1")
    assert "rien de plus ancien" in older.plain


async def test_deeds_name_what_they_were_done_to(
    manager: Manager, partner: Partner, running_gateway: RunningGateway
) -> None:
    await rename(running_gateway, partner, NASTY)
    page = await manager.get("/people")
    people = AdministratorStore(running_gateway.gateway.store)
    denis = await people.add("Denis", Role.AUDITOR, "", datetime.now(UTC), one_time=True)
    for form in ({"do": "role", "role": "operator"}, {"do": "remove", "confirm": "Denis"}):
        sent = await manager.send("/people/act", {"csrf": page.csrf, "id": denis.id, **form})
        assert sent.status == 303, sent.plain
    details = {"scopes": {"stock": "FULL"}, "permissions": ["A", "B"], "limit": None}
    log, at = DeedLog(running_gateway.gateway.store), datetime.now(UTC)
    await log.add(
        Deed(at=at, who="Claire", deed="key made", subject=partner._key_id, details=details)
    )
    made, removed, changed = rows(await manager.get("/audit/deeds"))[:3]
    assert f'<a href="/keys/{partner._key_id}"' in made
    assert f">{escape(NASTY)}</a>" in made
    assert NASTY not in made
    for said in ("stock: FULL", "A, B", audit.NONE):
        assert f"<dd>{said}</dd>" in made
    for gone in (removed, changed):
        assert f'<span title="{denis.id}">Denis</span>' in gone


@pytest.mark.parametrize("language", ["en", "fr"])
async def test_what_a_command_did_stands_there_under_the_account_that_ran_it(
    running_gateway: RunningGateway, session: aiohttp.ClientSession, language: str
) -> None:
    manager = await manager_of(running_gateway, session, language=language)
    key_id = (await running_gateway.mint()).id
    config = ["--config", str(running_gateway.folder / "gateway.yaml")]
    typed = ["keys", "update", key_id, "--limit", "77", *config]
    assert (await asyncio.to_thread(CliRunner().invoke, main, typed)).exit_code == 0
    said, who = words(language), f"shell: {getuser()}"
    [listed] = rows(await manager.get(f"/audit/deeds?who={quote(who)}"))
    assert who in listed
    assert said("deeds.key changed") in listed
    assert f'<a href="/keys/{key_id}"' in listed
    assert who in (await manager.get(f"/keys/{key_id}")).plain


def test_each_deed_has_its_words() -> None:
    """Read from the code: a name stands there, or in a constant, or is put together from some."""
    names = set[str]()
    for folder in (FOLDER.parent, FOLDER.parent.parent / "cli"):
        for file in folder.glob("**/*.py"):
            tree = ast.parse(file.read_bytes())
            calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
            for call in calls:
                names |= set(deeds_named(call, file))
    assert {"sessions ended", "record looked at", "policy approved", "audit verified"} <= names
    for language in ("en", "fr"):
        said = words(language)
        assert {name for name in names if not said.has(f"deeds.{name}")} == set()


def deeds_named(call: ast.Call, file: Path) -> list[str]:
    """The names of the deeds that a call makes; none where it makes none."""
    called = call.func
    verb = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if verb not in {"deed", "note"} or not call.args:
        return []
    # before the name stands who it is, or the store
    is_second = verb == "note" or ast.unparse(called) in {"self.panel.deeds.deed", "run.deed"}
    first = call.args[1 if is_second else 0]
    if isinstance(first, ast.Constant):
        return [str(first.value)]
    if isinstance(first, ast.JoinedStr):
        assert ast.unparse(first) == "f'policy {decision}'", f"{file}: say here what it can be"
        return [f"policy {each}" for each in (APPROVED, DECLINED)]
    assert isinstance(first, ast.Name), f"{file}: {ast.unparse(call)}"
    if file.name == "visit.py":  # hands on what a page names
        return []
    module = import_module(".".join(file.relative_to(FOLDER.parents[2]).with_suffix("").parts))
    return [str(getattr(module, first.id))]


async def test_an_entry_that_somebody_changed_is_shown_as_it_stands_there(
    manager: Manager, partner: Partner, running_gateway: RunningGateway
) -> None:
    ids = await partner.ids()
    await called(partner, f"/clients/{ids['clients']}")
    audit = running_gateway.folder / "audit"
    [path] = [each for each in audit.glob("*.jsonl") if b'"FULL"' in each.read_bytes()]
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data.replace(b'"FULL"', b'"<b>&"'))
    page = await manager.get("/audit")
    assert "<b>&" in page.plain
    assert "<b>&" not in page.text
    answer = await who_has_seen(manager, ids["clients"])
    assert answer.status == 200
    assert "Which fields is not known" in answer.plain


async def test_a_deed_about_something_without_a_name_is_listed_by_its_id(
    manager: Manager, running_gateway: RunningGateway
) -> None:
    of_nobody = Deed(at=datetime.now(UTC), who="Olga", deed="key made", subject="0" * 8, details={})
    await DeedLog(running_gateway.gateway.store).add(of_nobody)
    listed = await manager.get("/audit/deeds")
    assert listed.status == 200
    assert of_nobody.subject in listed.text


MEANINGLESS = (
    "from=yesterday",
    "from=0001-01-01T00:00",
    "to=9999-12-31T23:59-12:00",
    "operation=drop_table",
    "outcome=lost",
    "key=nobody",
)


async def test_a_filter_that_means_nothing_is_marked_and_nothing_is_shown(manager: Manager) -> None:
    for query in MEANINGLESS:
        page = await manager.get(f"/audit?{query}")
        assert page.status == 422, query
        assert page.text.count('aria-invalid="true"') == 1, query
        assert f'aria-describedby="{query.partition("=")[0]}-wrong"' in page.text
        assert "Download as CSV" not in page.plain, query
