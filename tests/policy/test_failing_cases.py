"""A sound policy whose cases fail: what it hides is hidden at once, what it opens waits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.documents.problems import DocumentErrors
from gateway.contract.access import LEVELS, AccessLevel
from gateway.policy.cases import UNREADABLE, cases_beside
from gateway.policy.policy import Version
from gateway.policy.running.keeper import MOST, Examiner, Keeper, find
from gateway.settings import StartRefused
from tests.heard import Heard
from tests.policies import TEXT, cases, moved

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
BASIC, STANDARD, FULL = LEVELS
# What runs at first shows the email from STANDARD on, the address at FULL alone.
CASES = cases(TEXT)
NARROW = moved("clients.email", "FULL")
WIDE = moved("clients.address", "STANDARD")
MIXED = moved("clients.email", "never", WIDE)


@dataclass
class Kept:
    """A keeper of one policy file and the cases beside it."""

    file: Path
    heard: Heard = field(default_factory=Heard)
    approvals: set[str] = field(default_factory=set)
    keeper: Keeper = field(init=False)

    @property
    def cases(self) -> Path:
        return cases_beside(self.file)

    async def begin(self, *, approve: bool = False, last: Version | None = None) -> "Kept":
        examiner = Examiner(path=self.file, report=lambda trouble: None)

        async def approved(digest: str) -> bool:
            return digest in self.approvals

        self.keeper = Keeper(
            examiner,
            self.heard,
            lambda: AT,
            approve=approve,
            approved=approved,
            steady=0.001,
            patience=0.002,
        )
        found = find(self.file)
        await self.keeper.begin(found, examiner.examined(found), last)
        return self

    async def save(self, text: str) -> str:
        """Another policy in the file; how things stand then."""
        self.file.write_text(text)
        return await self.look()

    async def expect(self, text: str) -> str:
        """Other cases beside it; how things stand then."""
        self.cases.write_text(text)
        return await self.look()

    async def look(self, *, asked: bool = False) -> str:
        await self.keeper.look(asked=asked)
        return self.keeper.status.state

    def sees(self, path: str, level: AccessLevel = STANDARD) -> bool:
        return path in self.keeper.policy().redactor("clients", level).visible

    @property
    def waits_for(self) -> str | None:
        return self.keeper.status.waits_for

    @property
    def is_files_own(self) -> bool:
        """Whether just what the file says runs."""
        return self.keeper.policy().hash == find(self.file).hash

    def events(self) -> list[tuple[str, bool]]:
        """What the store is told: each event, and whether it names a case."""
        said = self.keeper.unwritten
        return [(each.event, "policies.test.yaml:" in (each.reason or "")) for each in said]

    def ran(self) -> Version:
        """The text of what runs, as the store has it."""
        return self.keeper.status.policy.version


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    (tmp_path / "policies.yaml").write_text(TEXT)
    (tmp_path / "policies.test.yaml").write_text(CASES)
    return Kept(tmp_path / "policies.yaml")


@pytest.mark.parametrize("approve", [False, True])
async def test_a_change_that_only_hides_is_wholly_in_force_and_names_the_outdated_cases(
    kept: Kept, approve: bool
) -> None:
    await kept.begin(approve=approve)
    assert await kept.save(NARROW) == "current"
    assert (kept.sees("email"), kept.sees("email", FULL), kept.is_files_own) == (False, True, True)
    told = kept.keeper.status.members()
    line = CASES[: CASES.index("- name: STANDARD")].count("\n") + 1
    text = "STANDARD sees a client: clients.email: hidden, expected 'a@example.org'"
    place = {"file": str(kept.cases), "line": line}
    assert told["cases"] == {
        "text": "1 of its cases fails",
        "problems": [{**place, "text": text}],
        "more": 0,
    }
    assert kept.heard.events == ["policy_loaded", "policy_cases_fail"]
    assert kept.heard.details[-1]["cases"] == [f"{kept.cases}:{line}:3: {text}"]
    assert kept.events() == [("ran", False), ("ran", True)]


async def test_the_warning_stays_until_the_cases_are_mended(kept: Kept) -> None:
    await kept.begin()
    await kept.save(NARROW)
    assert (await kept.look(), bool(kept.keeper.status.failing)) == ("current", True)
    mended = cases(NARROW)
    assert (await kept.expect(mended), kept.keeper.status.failing) == ("current", ())
    assert kept.heard.events == [
        "policy_loaded",
        "policy_cases_fail",
        "policy_unchanged",
        "policy_cases_pass",
    ]


@pytest.mark.parametrize("approve", [False, True])
async def test_what_a_change_opens_waits_until_its_cases_pass(kept: Kept, approve: bool) -> None:
    await kept.begin(approve=approve)
    assert (await kept.save(WIDE), kept.waits_for) == ("held back", "cases")
    assert not kept.sees("address")
    kept.approvals.add(find(kept.file).hash)
    assert (await kept.look(asked=True), kept.sees("address")) == ("held back", False)
    kept.approvals.clear()
    state = await kept.expect(cases(WIDE))
    if approve:
        assert (state, kept.waits_for, kept.sees("address")) == ("held back", "approval", False)
        kept.approvals.add(find(kept.file).hash)
        state = await kept.look(asked=True)
    assert (state, kept.sees("address"), kept.is_files_own) == ("current", True, True)
    waited = ["policy_waits_for_cases", "policy_cases_fail"]
    waited += (
        ["policy_waits_for_approval", "policy_cases_pass", "policy_loaded"]
        if approve
        else ["policy_loaded", "policy_cases_pass"]
    )
    assert kept.heard.events == waited
    events = [("ran", False), ("held", True), *([("held", False)] if approve else [])]
    assert kept.events() == [*events, ("ran", False)]


@pytest.mark.parametrize("approve", [False, True])
async def test_of_a_mixed_change_what_it_hides_is_hidden_at_once_and_the_rest_waits(
    kept: Kept, approve: bool
) -> None:
    await kept.begin(approve=approve)
    assert (await kept.save(MIXED), kept.waits_for) == ("held back", "cases")
    assert (kept.sees("email", FULL), kept.sees("address")) == (False, False)
    assert kept.keeper.status.policy.version.made_of is not None
    assert kept.heard.events == ["policy_loaded", "policy_waits_for_cases", "policy_cases_fail"]
    assert kept.events() == [("ran", False), ("ran", False), ("held", True)]
    before = list(kept.heard.events)
    assert await kept.look(asked=True) == "held back"
    assert kept.heard.events == before
    if not approve:
        state = await kept.expect(cases(MIXED))
        assert (state, kept.sees("address"), kept.sees("email", FULL)) == ("current", True, False)


async def test_a_change_that_is_taken_back_waits_no_more(kept: Kept) -> None:
    await kept.begin()
    await kept.save(MIXED)
    assert (await kept.save(TEXT), kept.sees("email"), kept.waits_for) == ("current", True, None)
    assert kept.keeper.status.failing == ()


BROKEN = {
    "no YAML": "cases: [",
    "no case": "version: 1\ncases: 5\n",
    "a misspelt level": CASES.replace("{level: BASIC}", "{level: BASC}"),
    "too large": "#" * 300_000,
    "empty": "",
}


@pytest.mark.parametrize("broken", BROKEN)
async def test_cases_that_cannot_be_read_count_as_cases_that_fail(kept: Kept, broken: str) -> None:
    await kept.begin()
    kept.cases.write_text(BROKEN[broken])
    assert (await kept.save(MIXED), kept.waits_for) == ("held back", "cases")
    assert (kept.sees("email", FULL), kept.sees("address")) == (False, False)
    assert {each.code for each in kept.keeper.status.failing} == {UNREADABLE}
    assert kept.keeper.status.members()["cases"]["text"] == "its cases cannot be read"


async def test_a_folder_in_the_place_of_the_cases_hides_nothing_from_view(kept: Kept) -> None:
    await kept.begin()
    kept.cases.unlink()
    kept.cases.mkdir()
    assert (await kept.save(MIXED), kept.sees("email", FULL)) == ("held back", False)
    [problem] = kept.keeper.status.members()["cases"]["problems"]
    assert problem["text"] == "cannot be read: it is no plain file"


async def test_a_fault_in_trying_the_cases_keeps_no_field_from_being_hidden(kept: Kept) -> None:
    await kept.begin()

    def broken(*_: object) -> Sequence[object]:
        raise ZeroDivisionError

    kept.keeper.examiner = Examiner(
        path=kept.file,
        report=lambda trouble: None,
        verify=broken,  # type: ignore[arg-type]
    )
    assert (await kept.save(MIXED), kept.sees("email", FULL)) == ("held back", False)
    [problem] = kept.keeper.status.members()["cases"]["problems"]
    assert problem["text"].startswith(
        "cannot be tried, a fault of the gateway (ZeroDivisionError at"
    )


@pytest.mark.parametrize(
    "spoil", [lambda text: text[: len(text) // 2], lambda text: text.replace("email", "emial")]
)
async def test_a_file_that_is_no_policy_changes_nothing_whatever_its_cases(
    kept: Kept, spoil: "type[str]"
) -> None:
    await kept.begin()
    await kept.save(NARROW)
    assert await kept.save(spoil(MIXED)) == "stale"
    assert (kept.sees("email", FULL), kept.keeper.status.failing) == (True, ())
    assert await kept.save(NARROW) == "current"
    assert kept.heard.events[2:] == ["policy_refused", "policy_unchanged", "policy_cases_fail"]


def at_basic(item: str, text: str) -> str:
    """The text with one more item in the list of the clients' fields at BASIC."""
    return text.replace("lastName]", f"lastName, {item}]")


def since(month: str) -> str:
    """At BASIC only the clients of which something was written since then."""
    only = f"  only: {{BASIC: {{updatedAt: {{min: {month}-01T00:00:00Z}}}}}}\n"
    return moved("clients.updatedAt", "BASIC").replace("\nclients:\n", f"\nclients:\n{only}")


MASKED = NARROW.replace("STANDARD: [phone,", "STANDARD: [email: domain, phone,")
NARROWER = {
    "a mask in the place of a value": (TEXT, MASKED),
    "hidden where it was masked": (at_basic("email: domain", NARROW), MASKED),
    "a row condition": (moved("clients.updatedAt", "BASIC"), since("2026-01")),
    "a narrower row condition": (since("2026-01"), since("2026-06")),
}


@pytest.mark.parametrize("change", NARROWER)
async def test_masks_and_row_conditions_narrow_at_once_and_their_way_back_waits(
    kept: Kept, change: str
) -> None:
    wide, narrow = NARROWER[change]
    kept.cases.unlink()
    kept.file.write_text(wide)
    await kept.begin()
    kept.cases.write_text(cases(moved("clients.phone", "never", MIXED)))
    assert (await kept.save(narrow), kept.is_files_own) == ("current", True)
    assert (await kept.save(wide), kept.waits_for, kept.is_files_own) == (
        "held back",
        "cases",
        False,
    )


async def test_of_two_masks_of_which_neither_shows_less_nothing_is_shown_meanwhile(
    kept: Kept,
) -> None:
    hidden = moved("clients.phone", "FULL")
    kept.file.write_text(at_basic("phone: last(2)", hidden))
    kept.cases.unlink()
    await kept.begin()
    kept.cases.write_text(CASES)
    assert await kept.save(at_basic("phone: initial", hidden)) == "held back"
    assert "phone" not in kept.keeper.policy().redactor("clients", BASIC).masks
    assert not kept.sees("phone", BASIC)


@pytest.mark.parametrize("approve", [False, True])
@pytest.mark.parametrize("text", [NARROW, MIXED])
async def test_a_restart_goes_on_as_before_where_cases_fail(
    kept: Kept, text: str, approve: bool
) -> None:
    await kept.begin(approve=approve)
    await kept.save(text)
    again = await Kept(kept.file).begin(approve=approve, last=kept.ran())
    assert again.keeper.status.members() == kept.keeper.status.members()
    assert again.keeper.policy().hash == kept.keeper.policy().hash
    assert again.heard.events[-1] == "policy_cases_fail"
    assert await again.look() == kept.keeper.status.state


@pytest.mark.parametrize("approve", [False, True])
async def test_who_hides_a_field_while_nothing_runs_finds_a_gateway_that_starts(
    kept: Kept, approve: bool
) -> None:
    await kept.begin(approve=approve)
    kept.file.write_text(MIXED)
    again = await Kept(kept.file).begin(approve=approve, last=kept.ran())
    assert (again.keeper.status.state, again.waits_for) == ("held back", "cases")
    assert (again.sees("email", FULL), again.sees("address")) == (False, False)


async def test_the_very_first_start_is_refused_where_cases_fail(kept: Kept) -> None:
    kept.file.write_text(NARROW)
    with pytest.raises(DocumentErrors, match=r"policies\.test\.yaml:\d+:3: STANDARD sees a client"):
        await kept.begin()


async def test_a_start_is_refused_where_cases_fail_and_what_ran_last_is_damaged(kept: Kept) -> None:
    kept.file.write_text(NARROW)
    lost = Version(hash="ab" * 32, content=b"", file="x")
    with pytest.raises(StartRefused, match="abababababab that ran last is damaged"):
        await kept.begin(last=lost)
    kept.file.write_text(TEXT)
    assert (await kept.begin(last=lost)).is_files_own


async def test_of_many_failing_cases_so_many_are_told_and_the_rest_is_counted(kept: Kept) -> None:
    await kept.begin()
    head, _, each = CASES.partition("cases:\n")
    names = (each.replace("sees a client", f"sees a client, {number}") for number in range(40))
    await kept.expect(head + "cases:\n" + "".join(names))
    await kept.save(NARROW)
    told = kept.keeper.status.members()["cases"]
    assert (told["text"], len(told["problems"]), told["more"]) == (
        "40 of its cases fail",
        MOST,
        40 - MOST,
    )


def test_the_first_policy_passes_its_cases(tmp_path: Path) -> None:
    """Else these tests would show nothing."""
    (tmp_path / "policies.yaml").write_text(TEXT)
    (tmp_path / "policies.test.yaml").write_text(CASES)
    examiner = Examiner(path=tmp_path / "policies.yaml", report=lambda trouble: None)
    assert examiner.examined(find(examiner.path)).failing == ()
