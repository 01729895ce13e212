"""An answer made of a cached one is the answer of a gateway that caches nothing."""

import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import aiohttp

from adapters.sample import MAPPING
from adapters.wrappers.memory import MOST_VIEWS, LocalMemory
from gateway.contract.access import LEVELS
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import GOVERNED
from gateway.pipeline.call import Admitted, Call, Reply, Target
from gateway.pipeline.steps import NOBODY
from gateway.pipeline.views import Views
from gateway.policy.masks import Mask, fitting
from gateway.policy.policy import Policy, ResourceRules, Rules, Version, compile_policy
from gateway.policy.redactor import Redactor
from gateway.policy.rows import RowFilter, ValueTest, in_closed
from gateway.settings import BackendSettings, CacheSettings
from gateway.web.front import NO_BODY
from tests.adapters.stand_in import NOW
from tests.conftest import RunningGateway, Start
from tests.partner import Answer, Partner
from tests.policy.sights import opening

CACHED = {
    each.id: 60.0 for each in OPERATIONS if not each.creates and each.id != "list_available_slots"
}
COMPARED = ("X-Access-Level", "X-Skipped-Records", "Content-Type", "Retry-After")
_cursor = re.compile(r"cursor=[^>&]+").sub
SEED, STEPS = 8, 250


def some_rules(chance: random.Random) -> Rules:
    """Rules that hide, mask or show each field, and now and then hide animals that have died."""
    rules = {}
    for resource in GOVERNED:
        fields = {}
        for path in resource.paths:
            first = chance.choice([*LEVELS, LEVELS[0], None])
            kinds = fitting(resource.at(path))
            mask = Mask(chance.choice(kinds), 1) if kinds and first is not LEVELS[0] else None
            fields[path] = opening(first, LEVELS[0], mask)
        rules[resource.name] = ResourceRules(fields, {})
    if chance.random() < 0.4:
        patients = next(each for each in GOVERNED if each.name == "patients")
        alive = in_closed(patients.at("status"), ValueTest(allowed=frozenset({"ACTIVE"})))
        rows = dict.fromkeys(LEVELS[:2], RowFilter({"status": alive}))
        rules["patients"] = ResourceRules(rules["patients"].fields, rows)
    return rules


def policies(chance: random.Random) -> Iterator[Policy]:
    number = 0
    while True:
        number += 1
        version = Version(hash=f"{number:064x}", content=b"", file="policies.yaml")
        yield compile_policy(version, some_rules(chance), lambda trouble: None)


def told(answer: Answer) -> tuple[Any, ...]:
    link = _cursor("", answer.headers.get("Link", "")).partition("/api/v1")[2]
    return answer.status, answer.text, link, *(answer.headers.get(name) for name in COMPARED)


def paths(ids: dict[str, str]) -> list[str]:
    names = ("appointments", "clients", "patients", "consultations", "invoices", "stock")
    found = [f"/{name}/{ids[name]}" for name in names]
    found += [
        "/clients?limit=20",
        "/clients?search=ma",
        "/patients?limit=50",
        "/stock",
        "/stock/low",
    ]
    found += [f"/patients?clientId={ids['clients']}", f"/clients/{ids['clients']}/invoices"]
    return [*found, "/appointments/types", "/clients/nonsense", f"/clients/{ids['stock']}"]


def change_at_the_desk(gateway: RunningGateway, name: str) -> None:
    with closing(sqlite3.connect(gateway.folder / "clinic.db")) as database, database:
        database.execute("UPDATE PERSONNES SET PRENOM = ?", (name,))


async def test_a_cached_answer_is_the_answer_of_a_gateway_that_caches_nothing(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    chance = random.Random(SEED)
    caching = await start_gateway("caching", cache=CacheSettings(**CACHED, entries=40))
    url = f"sqlite:///{caching.folder}/clinic.db"
    plain = await start_gateway(
        "plain",
        backend=BackendSettings(url=url, mapping=MAPPING),
        cache=CacheSettings(**dict.fromkeys(CACHED, 0.0)),
    )
    memory = caching.gateway.adapter._inner._memory  # type: ignore[attr-defined]
    clock, ahead = memory.clock, [0.0]
    memory.clock = lambda: clock() + ahead[0]
    pipelines = [each.gateway.public.front.pipeline for each in (caching, plain)]
    partners = {}
    for level in ("BASIC", "STANDARD", "FULL"):
        partners[level] = [
            await Partner(each, session, None).with_key(level=level) for each in (caching, plain)
        ]
    asked, made = paths(dict(caching._known)), policies(chance)
    viewed = 0
    for number in range(STEPS):
        kind, (one, other) = chance.random(), partners[chance.choice([*partners])]
        if kind < 0.06:
            policy = next(made)
            for pipeline in pipelines:
                pipeline.policy = lambda policy=policy: policy
        elif kind < 0.1:
            booker = partners["FULL"][0]
            booked = await booker.post("/appointments", await booker.draft())
            assert booked.status == 201
        elif kind < 0.14:
            change_at_the_desk(caching, f"Zoé {number}")
            ahead[0] += 61
        elif kind < 0.16:
            ahead[0] += 61
        else:
            path, before = chance.choice(asked), memory.hits
            assert told(await one.get(path)) == told(await other.get(path)), (number, path)
            viewed += memory.hits - before
    assert viewed > STEPS / 10


async def test_a_new_policy_hides_what_refers_to_records_that_it_hides(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    gateway = await start_gateway(cache=CacheSettings(**CACHED))
    partner = await Partner(gateway, session, None).with_key()
    pipeline, ids = gateway.gateway.public.front.pipeline, await gateway.ids()
    rules = {
        each.name: ResourceRules({path: opening(LEVELS[0]) for path in each.paths}, {})
        for each in GOVERNED
    }
    nobody = RowFilter({"lastName": ValueTest(allowed=frozenset())})
    clients = ResourceRules(rules["clients"].fields, dict.fromkeys(LEVELS, nobody))
    old, new = (Version(hash=digit * 64, content=b"", file="policies.yaml") for digit in "12")
    before = compile_policy(old, rules, lambda trouble: None)
    after = compile_policy(new, {**rules, "clients": clients}, lambda trouble: None, before)
    asked = f"/patients?clientId={ids['clients']}", f"/invoices/client/{ids['clients']}"
    pipeline.policy = lambda: before
    shown = [(await partner.get(path)).data for path in asked]
    pipeline.policy = lambda: after
    hidden = [await partner.get(path) for path in asked]
    assert all(shown)
    assert [(each.status, each.data) for each in hidden[:1]] == [(200, [])]
    assert hidden[1].status == 404


async def kept(*queries: str) -> tuple[Views, LocalMemory]:
    """Views of one answer, each of a call with such a query; and where the answer is cached."""
    memory, views = LocalMemory(10, 100_000), Views()
    answer = await memory.keep("patients", "", b"0", b"[]", 60)
    target = Target(next(each for each in OPERATIONS if each.id == "list_patients"))
    redactor = Redactor(target.operation.returns, ["id"], lambda trouble: None)
    for query in queries:
        call = Call(
            at=NOW,
            request_id="",
            method="GET",
            target=target,
            digest=None,
            query=query,
            upload=NO_BODY,
        )
        views.keep(Admitted(call, NOBODY, target, redactor, None), answer, Reply(200, b"[]"))
    return views, memory


async def test_one_question_in_ever_other_words_makes_no_more_views_than_are_found() -> None:
    views, _ = await kept(*(f"limit=%3{number:03}" for number in range(2 * MOST_VIEWS)))
    assert len(views._answers) == MOST_VIEWS


async def test_the_query_of_a_view_counts_against_the_bytes_of_the_cache() -> None:
    short, long = [(await kept(query))[1].kept.current_size() for query in ("a", "a" * 4000)]
    assert long - short == 3999
