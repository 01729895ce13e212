"""The policy in the panel: what is in force and why, what waits, and who decided what."""

import asyncio
import html
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from gateway.admin.words import words
from gateway.administrators.administrator import Role
from gateway.administrators.log import Deed, DeedLog
from gateway.cli.policy import policy as command
from gateway.contract.access import AccessLevel, Permission
from gateway.contract.resources import GOVERNED
from gateway.keys.key import Key
from gateway.policy.masks import KINDS, Mask
from gateway.policy.running import follower
from gateway.policy.running.versions import Event, Versions
from gateway.policy.telling.sheets import as_csv
from gateway.usage import CallSums, add, minute_of
from tests.admin.manager import Manager, manager_of
from tests.conftest import RunningGateway, Start
from tests.policies import TEXT
from tests.policy.test_keeper import MIXED, NARROW, WIDE
from tests.waiting import until

NASTY = "<script>alert(1)</script>\"'&{{7*7}}"
REASON = f"The partner asked; {NASTY}"
MASKED = TEXT.replace("firstName, lastName]", "firstName, lastName, {phone: last(2)}]").replace(
    "patients:\n",
    "patients:\n  only: {BASIC: {status: ACTIVE}, STANDARD: {status: {not: INACTIVE}}}\n",
)


class Held:
    """A gateway whose widenings wait, and its file."""

    def __init__(self, running: RunningGateway, file: Path) -> None:
        self.running = running
        self.file = file

    @property
    def hash(self) -> str:
        """What runs."""
        return self.running.gateway.keeper.policy().hash

    async def save(self, text: str, state: str = "held back") -> str:
        """Another file; the hash of what waits then, once the store tells of it too."""
        self.file.write_text(text)
        keeper = self.running.gateway.keeper
        digest = sha256(text.encode()).hexdigest()
        await until(lambda: keeper.status.file_hash == digest and not keeper.unwritten)
        assert keeper.status.state == state
        waiting = keeper.status.waiting
        versions = Versions(self.running.gateway.store)
        while waiting is not None:
            [process] = await versions.running(datetime.now(UTC))
            if process.state["waiting"] == waiting.hash:
                break
            await asyncio.sleep(0.02)
        return "" if waiting is None else waiting.hash

    def form(self, waiting: str, reason: str = REASON) -> dict[str, str]:
        return {"hash": waiting, "running": self.hash, "reason": reason}

    async def deeds(self) -> Sequence[Deed]:
        return await DeedLog(self.running.gateway.store).last(
            9, deeds=["policy approved", "policy declined"]
        )


@pytest.fixture
async def held(start_gateway: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    monkeypatch.setattr(follower, "POLL", 0.05)
    file = tmp_path / "policies.yaml"
    file.write_text(TEXT)
    return Held(await start_gateway(policy=file, policy_widening="approve"), file)


@pytest.fixture
async def manager(held: Held, session: aiohttp.ClientSession) -> Manager:
    return await manager_of(held.running, session, role=Role.OPERATOR)


async def a_key(held: Held, name: str, level: AccessLevel) -> str:
    read = [Permission.CLIENT_READ]
    key = Key(name=name, permissions=frozenset(read), level=level, created_at=datetime.now(UTC))
    await held.running.gateway.keys.add(key)
    return key.id


async def test_a_widening_is_shown_with_whom_it_touches_and_runs_once_it_is_approved(
    held: Held, manager: Manager
) -> None:
    now = datetime.now(UTC)
    touched = await a_key(held, NASTY, AccessLevel.BASIC)
    await a_key(held, "Untouched", AccessLevel.FULL)
    await add(held.running.gateway.store, {(minute_of(now), touched, "get_client"): CallSums(7)})
    before = held.hash
    waiting = await held.save(WIDE)
    page = await manager.get("/policy")
    assert "held back" in page.plain
    sentence = "clients.address is shown whole at BASIC and STANDARD; until now hidden."
    assert sentence in page.plain
    assert f"1 active key gains it ({NASTY})" in page.plain
    assert "<script>alert" not in page.text
    assert "Untouched" not in page.plain
    counted = await manager.get("/policy/answers", **{"HX-Request": "true"})
    assert "about 7 answers of the last 30 days showed Clients (owners)" in counted.plain
    whole = await manager.get("/policy/answers")
    assert "about 7 answers" in (await manager.get(whole.headers["Location"])).plain

    sent = await manager.send("/policy/approve", {"csrf": page.csrf, **held.form(waiting)})
    assert (sent.status, sent.headers["Location"]) == (303, "/policy")
    assert (held.hash, before == waiting) == (waiting, False)
    page = await manager.get("/policy")
    assert "Approved. It is in force." in page.plain
    assert f"approved by Claire: {REASON}" in page.plain
    assert "<script>alert" not in page.text
    assert 'action="/policy/approve"' not in page.text
    [deed] = await held.deeds()
    assert (deed.who, deed.deed, deed.subject) == ("Claire", "policy approved", waiting)
    assert deed.details == {"reason": REASON}


async def test_what_was_declined_says_by_whom_and_waits_no_more_until_the_file_changes(
    held: Held, manager: Manager
) -> None:
    waiting, runs = await held.save(WIDE), held.hash
    sent = await manager.fill("/policy", held.form(waiting), "/policy/decline")
    assert sent.status == 303
    page = await manager.get("/policy")
    assert "Declined by Claire, " in page.plain
    assert html.escape(REASON, quote=False).replace('"', "&#34;").replace("'", "&#39;") in page.text
    assert 'action="/policy/decline"' not in page.text
    assert "What waits for approval" not in page.plain
    assert held.hash == runs
    config = str(held.running.folder / "gateway.yaml")
    done = await asyncio.to_thread(CliRunner().invoke, command, ["status", "--config", config])
    assert "declined  by Claire" in done.stdout
    assert REASON in done.stdout

    await held.save(NARROW, "current")
    assert await held.save(WIDE) == waiting
    page = await manager.get("/policy")
    assert "Declined by" not in page.plain.partition("What happened")[0]
    assert (await manager.fill("/policy", held.form(waiting), "/policy/decline")).status == 303
    sent = await manager.fill("/policy", held.form(waiting, "After all"), "/policy/approve")
    assert sent.status == 303
    assert held.hash == waiting
    assert [each.deed for each in await held.deeds()] == [
        "policy approved",
        "policy declined",
        "policy declined",
    ]


async def test_nothing_is_decided_without_a_reason_or_over_what_is_no_longer_so(
    held: Held, manager: Manager
) -> None:
    waiting, runs = await held.save(MIXED), held.hash
    token = (await manager.get("/policy")).csrf
    good = {"csrf": token, **held.form(waiting)}
    wrong = {
        "Write a reason": [{"reason": "  "}, {"reason": "x" * 501}, {"reason": "a\x07b"}],
        "no longer waits": [{"hash": "0" * 64}, {"hash": waiting[:12]}, {"hash": ""}],
        "in force has changed": [{"running": waiting}, {"running": ""}],
    }
    for said, forms in wrong.items():
        for each in forms:
            for verb in ("approve", "decline"):
                page = await manager.send(f"/policy/{verb}", {**good, **each})
                assert page.status == 422, each
                assert said in page.plain
    assert held.hash == runs
    assert await held.deeds() == []


async def test_only_what_is_not_in_force_yet_is_asked_for_of_a_change_that_shows_less_too(
    held: Held, manager: Manager
) -> None:
    before = held.hash
    waiting = await held.save(MIXED)
    page = await manager.get("/policy")
    assert f"what both versions show: {before[:12]} and {waiting[:12]}" in page.plain
    assert "1 change " in page.plain
    version = await manager.get(f"/policy/versions/{before}")
    assert "clients.email is shown whole at STANDARD and FULL; until now hidden." in version.plain
    assert "shows more" in version.plain
    common = await manager.get(f"/policy/versions/{held.hash[:12]}")
    assert "This is what is in force." in common.plain
    assert "No file says this" in common.plain


async def test_a_file_that_is_refused_is_told_of_with_its_line(
    held: Held, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(held.running, session, language="fr")
    await held.save(TEXT.replace("lastName]", "lastNam]"), "stale")
    page = await manager.get("/policy")
    assert "fichier refusé" in page.plain
    told = "clients has no field &#39;lastNam&#39; (did you mean lastName?)"
    assert f'<code>policies.yaml:13:26</code> <span lang="en">{told}</span>' in page.text
    assert "BASIC: [id, firstName, lastNam]" in page.plain
    for english in ("whole", "hidden", "record", "in force", "until", "active key", "Version of"):
        assert english not in page.plain.partition("Qui voit quoi")[0]


async def test_the_matrix_says_whole_in_part_or_hidden_and_which_records_exist(
    start_gateway: Start, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text(MASKED)
    running = await start_gateway(policy=file)
    manager = await manager_of(running, session, role=Role.AUDITOR)
    page = await manager.get("/policy")
    rules, words = running.gateway.keeper.policy().rules, {"masked": "in part", "whole": "whole"}
    for resource in GOVERNED:
        table = page.text.split(f'id="of-{resource.name}"')[1].split("</table>")[0]
        rows = re.findall(r"<code>([^<]*)</code></small></th>(.*?)</tr>", table, re.DOTALL)
        assert [path for path, _ in rows] == [html.escape(each) for each in resource.paths]
        for path, cells in rows:
            marks = re.findall(r'<span class="mark (\w+)">([^<]*)<', cells)
            sights = rules[resource.name].fields[path]
            kinds = ["masked" if isinstance(each, Mask) else each.value for each in sights]
            assert marks == [(kind, words.get(kind, kind)) for kind in kinds]
    assert "BASIC sees only records whose status is ACTIVE." in page.plain
    assert "STANDARD sees only records whose status is ACTIVE or DECEASED." in page.plain
    assert "no approval is asked for (policy_widening: apply)" in page.plain

    sheet = await manager.get("/policy/table")
    assert sheet.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in sheet.headers["Content-Disposition"]
    assert sheet.text == as_csv(running.gateway.keeper.policy())
    printed = await manager.get("/policy/page")
    assert printed.heading == "What partners see"
    assert running.gateway.keeper.policy().hash in printed.text


async def test_a_version_is_kept_with_its_text_and_said_to_be_damaged_where_it_is(
    held: Held, manager: Manager
) -> None:
    first = held.hash
    await held.save(f"# {NASTY}\n{NARROW}", "current")
    page = await manager.get(f"/policy/versions/{held.hash}")
    assert f"# {NASTY}" in page.plain
    assert "<script>alert" not in page.text
    old = await manager.get(f"/policy/versions/{first}")
    assert (
        "shows more clients.email is shown whole at STANDARD and FULL; until now hidden."
        in old.plain
    )
    table = (await manager.get(f"/policy/table?version={first}")).text
    assert "clients,email,STANDARD,whole," in table
    assert "clients,email,STANDARD,hidden," in (await manager.get("/policy/table")).text
    with closing(sqlite3.connect(held.running.folder / "gateway.db")) as store, store:
        changed = "UPDATE policy_versions SET content = CAST('version: 1' AS BLOB) WHERE hash = ?"
        assert store.execute(changed, [first]).rowcount == 1
    page = await manager.get(f"/policy/versions/{first}")
    assert "is not the one that ran" in page.plain
    assert "shows more" not in page.plain
    assert "version: 1" not in page.plain
    for unknown in ("0" * 64, first[:8], "x" * 64, first + "0", f"{first[:12]}%25"):
        assert (await manager.get(f"/policy/versions/{unknown}")).status == 404
        assert (await manager.get(f"/policy/table?version={unknown}")).status == 404


async def test_the_history_is_read_some_at_a_time(held: Held, manager: Manager) -> None:
    versions = Versions(held.running.gateway.store)
    for number in range(60):
        at = datetime(2026, 1, 1, 0, number, tzinfo=UTC)
        reason = f"refused for reason {number:02d} {NASTY}"
        await versions.ask(Event(at=at, event="refused", hash=f"{number:064x}", reason=reason))
    seen, path = [], "/policy/history"
    for _ in range(3):
        page = await manager.get(path)
        assert "<script>alert" not in page.text
        seen += re.findall(r"reason (\d\d)", page.plain)
        older = re.search(r'href="([^"]*)" rel="next"', page.text)
        path = older[1] if older else ""
    assert seen == [f"{number:02d}" for number in reversed(range(60))]
    assert path == ""
    assert len(re.findall(r"reason \d\d", (await manager.get("/policy")).plain)) == 5


@pytest.mark.parametrize("language", ["en", "fr"])
def test_every_mask_is_put_into_words(language: str) -> None:
    said = words(language)
    for kind in KINDS.values():
        assert said.mask(Mask(kind, 3 if kind.largest else 0))
        assert ("3" in said.mask(Mask(kind, 3))) == bool(kind.largest)
