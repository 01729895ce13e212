"""What counts against no limit leaves few lines, however much of it comes; how much is told."""

import json
from collections import Counter
from typing import Any

import pytest

from gateway.audit import journal
from gateway.audit.buffer import MOST_WAITING, SPARE, Buffer
from gateway.audit.entries import SPARED, Mark
from gateway.audit.journal import AT_ONCE, Sparing
from tests.audit.chains import START, entry, machine
from tests.audit.test_buffer import Ears
from tests.conftest import Begin
from tests.partner import Partner
from tests.web.test_observers import flush
from tests.world import SOME_ID, World

FLOOD = 150


class Ticks:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def audit_lines(partner: Partner) -> list[dict[str, Any]]:
    """With the marks."""
    files = sorted((partner.gateway.folder / "audit").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def test_so_many_at_once_and_then_one_a_second_of_each_key() -> None:
    ticks = Ticks()
    sparing = Sparing(ticks)
    assert Counter(sparing.spares(None) for _ in range(250)) == {False: AT_ONCE, True: 150}
    # nobody has fewer lines since another calls too often
    assert not sparing.spares("a")
    ticks.now = 10.0
    assert Counter(sparing.spares(None) for _ in range(50)) == {False: 10, True: 40}
    ticks.now = 1e6
    assert Counter(sparing.spares(None) for _ in range(250)) == {False: AT_ONCE, True: 150}
    assert sparing.take_spared() == {None: 340}
    assert sparing.take_spared() == {}


async def test_a_flood_without_a_key_or_beyond_a_limit_fills_no_disk(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "TELL_AFTER", 0.0)
    partner = await (await partner_of(World())).with_key(limit=120)
    nobody, junk = partner.anonymous(), partner.as_key("junk")
    for _ in range(FLOOD):
        assert (await nobody.get("/nowhere")).status == 401
        assert (await junk.get(f"/clients/{SOME_ID}")).status == 401
    for number in range(120 + FLOOD):
        assert (await partner.get(f"/clients/{SOME_ID}")).status == (200 if number < 120 else 429)
    await flush(partner)
    entries = [each for each in audit_lines(partner) if "outcome" in each]
    own = [each for each in entries if each["keyId"] == partner._key_id]
    # what was shown has its line, always
    assert sum(each["outcome"] == "answered" for each in own) == 120
    assert AT_ONCE <= sum(each["outcome"] == "refused" for each in own) < AT_ONCE + 25
    assert AT_ONCE <= sum(each["keyId"] is None for each in entries) < AT_ONCE + 25
    access = [json.loads(line) for line in partner.gateway.lines("access.jsonl")]
    assert Counter(each["keyId"] for each in access) == Counter(each["keyId"] for each in entries)
    marks = [each for each in audit_lines(partner) if each.get("kind") == SPARED]
    spared: Counter[str | None] = Counter()
    for each in marks:
        spared[each.get("keyId") or None] += each["lines"]
    assert spared[None] + sum(each["keyId"] is None for each in entries) == 2 * FLOOD
    assert spared[partner._key_id] + len(own) == 120 + FLOOD


async def test_what_had_no_lines_is_told_at_the_end_at_the_latest(partner_of: Begin) -> None:
    partner = await partner_of(World())
    for _ in range(FLOOD):
        await partner.anonymous().get("/nowhere")
    await partner.gateway.gateway.aclose()
    [mark] = [each for each in audit_lines(partner) if each.get("kind") == SPARED]
    assert FLOOD - AT_ONCE - 25 < mark["lines"] <= FLOOD - AT_ONCE


async def test_while_the_audit_is_broken_marks_wait_in_bounds_too(tmp_path: Any) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        heard = Ears()
        buffer = Buffer(process.writer, heard, made.clock.now)
        buffer.broken = "full"
        for _ in range(MOST_WAITING + SPARE + 5):
            buffer.note(Mark(SPARED, START, lines=3))
        assert buffer.waiting == MOST_WAITING + SPARE
        assert heard.counted["log_lines_dropped"] == 15
        buffer.broken = ""
        buffer.note(entry(START))
        assert buffer.waiting == MOST_WAITING + SPARE + 1
