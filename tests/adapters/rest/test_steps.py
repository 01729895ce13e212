"""Steps of a booking: headers kept, values that are missing, and what is taken back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.base import BackendNonsense, NotFound, OutcomeUnknown, Rejected, SlotTaken
from adapters.documents.problems import DocumentErrors
from adapters.mapped.clock_change import KnownTimes
from adapters.mapping.models import StepKept, StepMap
from adapters.rest.adapter import RestAdapter, RestSession
from examples.json_cloud.backend import BASE, Cloud
from tests.adapters.clinic import a_draft
from tests.adapters.rest.cloud import connect, listening, new_cloud, replaced

STEPS = "  steps:\n    - post: /visits\n"


class Holding(Cloud):
    """Wants a hold before a visit, and lets it go again."""

    holding, answer = 201, {"state": "free"}
    let_go = 200

    def app(self) -> web.Application:
        app = super().app()
        app.add_routes(
            [
                web.get(f"{BASE}/state", self.state),
                web.post(f"{BASE}/holds", self.hold),
                web.delete(f"{BASE}/holds/{{id}}", self.release),
            ]
        )
        self.holds: list[str] = []
        self.matches: list[str] = []
        return app

    async def state(self, request: web.Request) -> web.Response:
        return web.json_response(self.answer, headers={"ETag": '"v7"'})

    async def hold(self, request: web.Request) -> web.Response:
        self.matches.append(request.headers.get("If-Match", ""))
        if self.holding == 201:
            self.holds.append("17")
        return web.Response(status=self.holding, headers={"Location": "/v2/holds/17"})

    async def release(self, request: web.Request) -> web.Response:
        if self.let_go == 200:
            self.holds.remove(request.match_info["id"])
        return web.json_response({}, status=self.let_go)


@asynccontextmanager
async def opened(
    cloud: Cloud, folder: Path, *steps: str, more: Sequence[tuple[str, str]] = ()
) -> AsyncIterator[RestAdapter]:
    written = "".join(f"    - {step}\n" for step in steps)
    async with listening(cloud) as url:
        change = replaced(*more, (STEPS, STEPS.replace("steps:\n", f"steps:\n{written}")))
        adapter = connect(url, folder, change)
        try:
            yield adapter
        finally:
            await adapter.aclose()


FREE = "{source: \"state == 'free' && 'yes' || `null`\", missing: MEANS}"
READ = f"{{get: /state, keep: {{tag: {{header: etag}}, free: {FREE}}}}}"
TAKE = (
    "{post: /holds, headers: {If-Match: {made: tag}}, body: {}, keep: {hold: {header: Location,"
    ' match: "([0-9]+)$"}}, undo: {delete: "/holds/{hold}"}}'
)


async def test_a_kept_header_is_sent_and_a_kept_address_leads_back(tmp_path: Path) -> None:
    cloud = Holding(new_cloud().records)
    steps = READ.replace("MEANS", "slot taken"), TAKE
    async with opened(cloud, tmp_path, *steps) as adapter:
        await adapter.create_appointment(await a_draft(adapter))
        assert cloud.matches == ['"v7"']
        assert cloud.holds == ["17"]


async def test_a_hold_of_a_visit_that_is_refused_is_let_go(tmp_path: Path) -> None:
    cloud = Holding(new_cloud().records)
    async with opened(cloud, tmp_path, READ.replace("MEANS", "slot taken"), TAKE) as adapter:
        draft = await a_draft(adapter)
        cloud.before_booking = lambda wanted: cloud.desk_books(wanted["vet"], draft.scheduled_at)
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(draft)
        assert cloud.holds == []
        assert cloud.calls[-1].startswith("DELETE")


async def test_a_hold_of_a_visit_that_is_withdrawn_is_let_go(tmp_path: Path) -> None:
    cloud = Holding(new_cloud().records)
    async with opened(cloud, tmp_path, READ.replace("MEANS", "slot taken"), TAKE) as adapter:
        draft = await a_draft(adapter)
        cloud.after_booking = lambda visit: cloud.desk_books(visit["vet"], draft.scheduled_at)
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(draft)
        assert cloud.holds == []
        state = [it["state"] for it in cloud.records.visits.values() if it.get("ext_ref")]
        assert state == ["cancelled"]


async def test_a_hold_is_let_go_whatever_keeps_the_visit_from_being_sent(tmp_path: Path) -> None:
    cloud = Holding(new_cloud().records)
    async with opened(cloud, tmp_path, READ.replace("MEANS", "slot taken"), TAKE) as adapter:
        unsendable = await a_draft(adapter, reason="\ud800")
        with pytest.raises(TypeError, match="surrogates"):
            await adapter.create_appointment(unsendable)
        assert cloud.holds == []
        assert cloud.calls[-1].startswith("DELETE")


KEEP = '      keep: {visit: {source: visit, match: "/visits/([0-9]+)$"}}\n'
CANCEL = '{post: "/visits/{visit}/cancel", body: {}}'
WITHDRAWN_BY = {
    "both": [(KEEP, f"{KEEP}      undo: {CANCEL}\n")],
    "undo": [(KEEP, f"{KEEP}      undo: {CANCEL}\n"), (f"  cancel: {CANCEL}\n", "")],
}


@pytest.mark.parametrize("changes", WITHDRAWN_BY.values(), ids=WITHDRAWN_BY)
async def test_a_visit_is_withdrawn_once_by_cancel_or_else_by_undo_of_its_step(
    changes: list[tuple[str, str]], tmp_path: Path
) -> None:
    cloud = Holding(new_cloud().records)
    read = READ.replace("MEANS", "slot taken")
    async with opened(cloud, tmp_path, read, TAKE, more=changes) as adapter:
        draft = await a_draft(adapter)
        cloud.after_booking = lambda visit: cloud.desk_books(visit["vet"], draft.scheduled_at)
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(draft)
        assert cloud.holds == []
        assert sum(call.endswith("/cancel") for call in cloud.calls) == 1


async def test_a_visit_that_could_not_be_withdrawn_can_be_tried_again(tmp_path: Path) -> None:
    class Stubborn(Holding):
        failing = True

        async def cancel(self, request: web.Request) -> web.Response:
            return web.Response(status=500) if self.failing else await super().cancel(request)

    cloud, read = Stubborn(new_cloud().records), READ.replace("MEANS", "slot taken")
    async with opened(cloud, tmp_path, read, TAKE, more=WITHDRAWN_BY["undo"]) as adapter:
        session = RestSession(adapter, asyncio.get_running_loop().time() + 30)
        await adapter.bookings.book(session, await a_draft(adapter), KnownTimes())
        with pytest.raises(OutcomeUnknown, match="could not be withdrawn"):
            await session.withdraw()
        cloud.failing = False
        await session.withdraw()
        session.release()
        assert (session.made, cloud.holds) == (None, [])
        assert sum(call.endswith("/cancel") for call in cloud.calls) == 2


async def test_fact_34_a_change_of_what_has_changed_since_is_a_taken_slot(tmp_path: Path) -> None:
    cloud = Holding(new_cloud().records)
    cloud.holding = 412
    async with opened(cloud, tmp_path, READ.replace("MEANS", "slot taken"), TAKE) as adapter:
        with pytest.raises(SlotTaken, match="412, changed meanwhile"):
            await adapter.create_appointment(await a_draft(adapter))
        assert not any(call.startswith("DELETE") for call in cloud.calls)


@pytest.mark.parametrize(
    ("means", "error"),
    [("slot taken", SlotTaken), ("not found", NotFound), ("rejected", Rejected)],
)
async def test_a_missing_value_means_what_the_mapping_says(
    means: str, error: type[Exception], tmp_path: Path
) -> None:
    cloud = Holding(new_cloud().records)
    cloud.answer = {"state": "busy"}
    read = READ.replace("MEANS", means)
    for step in (read, read.replace("`null`", "''")):
        async with opened(cloud, tmp_path, step, TAKE) as adapter:
            with pytest.raises(error, match=r"lacks what booking\.steps keeps"):
                await adapter.create_appointment(await a_draft(adapter))
            assert cloud.holds == []


async def test_a_missing_value_without_a_meaning_is_nonsense(tmp_path: Path) -> None:
    cloud = Holding(new_cloud().records)
    cloud.answer = {"state": "busy"}
    read = READ.replace(", missing: MEANS", "")
    async with opened(cloud, tmp_path, read) as adapter:
        with pytest.raises(BackendNonsense):
            await adapter.create_appointment(await a_draft(adapter))


async def test_a_step_that_cannot_be_taken_back_leaves_the_outcome_open(tmp_path: Path) -> None:
    cloud = Holding(new_cloud().records)
    cloud.let_go = 500
    async with opened(cloud, tmp_path, READ.replace("MEANS", "slot taken"), TAKE) as adapter:
        draft = await a_draft(adapter)
        cloud.before_booking = lambda wanted: cloud.desk_books(wanted["vet"], draft.scheduled_at)
        with pytest.raises(OutcomeUnknown, match="could not be taken back"):
            await adapter.create_appointment(draft)


async def test_a_post_that_only_reads_leaves_nothing_to_be_taken_back(tmp_path: Path) -> None:
    cloud = Holding(new_cloud().records)
    search = "{post: /holds, reads: true, body: {}, errors: [{status: 409, means: slot taken}]}"
    async with opened(cloud, tmp_path, search) as adapter:
        cloud.holding = 409
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(await a_draft(adapter))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"get": "/x", "reads": True}, "reads goes with post"),
        ({"get": "/x", "undo": "/y"}, "undo goes with a call that writes"),
        (
            {"post": "/x", "reads": True, "undo": {"delete": "/y"}},
            "undo goes with a call that writes",
        ),
    ],
)
def test_what_is_no_step_is_said(step: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        StepMap.model_validate(step)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"header": "ETag", "source": "a"}, "takes source, a path, or header"),
        ({"match": "(a)"}, "takes source, a path, or header"),
        ({"source": "a", "optional": True, "missing": "rejected"}, "takes optional or missing"),
        ({"source": "a", "missing": "unavailable"}, "slot taken"),
        ({"header": "E Tag"}, "is no name of a header"),
    ],
)
def test_what_cannot_be_kept_is_said(kept: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        StepKept.model_validate(kept)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{post: /holds, undo: {delete: "/holds/{hold}"}}', "nothing here is called hold"),
        ("{post: /holds, headers: {If-Match: {made: tag}}}", "no call before this one keeps tag"),
        ("{insert: t, values: {a: 1}, undo: {delete: /x}}", "insert stands only in"),
    ],
)
def test_what_is_wrong_with_a_step_is_said_at_its_line(
    written: str, said: str, tmp_path: Path
) -> None:
    change = replaced((STEPS, STEPS.replace("steps:\n", f"steps:\n    - {written}\n")))
    with pytest.raises(DocumentErrors, match=rf"mapping\.yaml:\d+:\d+: .*{said}"):
        connect("http://127.0.0.1:1/v2", tmp_path, change)
