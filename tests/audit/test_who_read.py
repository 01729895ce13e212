"""Who has seen a record, over a whole audit: filled as fast as it goes, asked by the command line.

AUDIT_ENTRIES=10000000 makes it the audit of a busy year; AUDIT_FOLDER keeps it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from gateway.audit.entries import ANSWERED, REFUSED, Entry
from gateway.audit.index import Index
from tests.audit.chains import START, Machine, machine

SMALL = 20_000
ENTRIES = int(os.environ.get("AUDIT_ENTRIES", SMALL))
DAYS, AT_ONCE, LONGEST = 100, 20_000, 2.0
KEYS = [str(UUID(int=number)) for number in range(1, 13)]
FIRST = Random(1).getrandbits(128)
CLIENTS = [str(UUID(int=FIRST + number)) for number in range(20_000)]
WANTED = CLIENTS[7]


def entries(count: int) -> Iterator[Entry]:
    """Calls in the order of time: clients read one by one, lists of 20, and some refusals."""
    random = Random(5)
    step = timedelta(days=DAYS) / count
    for number in range(count):
        time, kind = START + number * step, random.random()
        key, request = random.choice(KEYS), f"{number:032x}"
        policy = "aaaaaaaaaaaa" if number < count // 2 else "bbbbbbbbbbbb"
        if kind < 0.05:
            some = random.sample(CLIENTS, 20)
            yield Entry(time, request, key, "list_clients", some, "BASIC", policy, ANSWERED, None)
        elif kind < 0.95:
            one = [random.choice(CLIENTS)]
            yield Entry(time, request, key, "get_client", one, "FULL", policy, ANSWERED, None)
        else:
            none: list[str] = []
            why = "NotFound"
            yield Entry(time, request, key, "get_client", none, "FULL", policy, REFUSED, why)


async def fill(made: Machine) -> dict[str, int]:
    """An audit of one process over many days; how often each key was shown the wanted record."""
    expected: dict[str, int] = {}
    process, batch = await made.begin(), []
    for each in entries(ENTRIES):
        if WANTED in each.record_ids:
            expected[str(each.key_id)] = expected.get(str(each.key_id), 0) + 1
        if batch and (len(batch) == AT_ONCE or each.time.date() != batch[-1].time.date()):
            await process.note(*batch)
            batch = []
        made.clock.pass_(seconds=(each.time - made.clock.now()).total_seconds())
        batch.append(each)
    await process.note(*batch)
    await process.end()
    return expected


def asked(folder: Path, *words: str) -> tuple[float, str]:
    """Seconds that the whole command took, and what it printed.

    Of a small audit its CPU seconds: the tests beside it may keep it waiting.
    """
    command = [sys.executable, "-m", "gateway", "--config", str(folder / "gateway.yaml"), *words]
    began, before = time.perf_counter(), os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    whole, busy = time.perf_counter() - began, sum(after[2:4]) - sum(before[2:4])
    sys.stdout.write(
        f"{ENTRIES} entries: {' '.join(words[:2])} in {whole:.2f} s, {busy:.2f} s busy\n"
    )
    return (busy if ENTRIES == SMALL else whole), done.stdout


def size(folder: Path, files: str) -> int:
    """Bytes."""
    return sum(each.stat().st_size for each in folder.glob(files))


@pytest.mark.long
async def test_an_owners_question_is_answered_within_two_seconds(tmp_path: Path) -> None:
    folder = Path(os.environ.get("AUDIT_FOLDER", tmp_path))
    (folder / "gateway.yaml").write_text("state: .\n")
    began = time.perf_counter()
    async with machine(folder) as made:
        expected = await fill(made)
        filled = time.perf_counter() - began
        lines = await Index(made.store, made.audit).catch_up()
        assert lines >= ENTRIES
        assert await Index(made.store, made.audit).catch_up() == 0
    indexed = time.perf_counter() - began - filled
    seconds, said = asked(folder, "audit", "who-read", "clients", WANTED, "--json")
    keys = json.loads(said)["keys"]
    found = {each["id"]: sum(call["times"] for call in each["calls"]) for each in keys}
    assert found == expected
    assert json.loads(said)["complete"] is True
    sys.stdout.write(f"written in {filled:.0f} s, indexed in {indexed:.0f} s\n")
    sys.stdout.write(f"{size(folder, 'audit/*') / 1e6:.0f} MB of lines, ")
    sys.stdout.write(f"{size(folder, 'gateway.db') / 1e6:.0f} MB of index\n")
    assert seconds < LONGEST
    last = (START + timedelta(days=DAYS - 1)).date()
    since, said = asked(
        folder, "audit", "who-read", "clients", WANTED, "--json", "--since", str(last)
    )
    assert sum(each["calls"][0]["times"] for each in json.loads(said)["keys"]) < sum(found.values())
    assert since < LONGEST
    seconds, said = asked(folder, "audit", "key", KEYS[0], "--json")
    told = json.loads(said)
    ended = {(each["operation"], each["outcome"]) for each in told["calls"]}
    assert ended == {
        ("list_clients", ANSWERED), ("get_client", ANSWERED), ("get_client", REFUSED),
    }  # fmt: skip
    times = [each["time"] for each in told["last"]]
    assert times == sorted(times, reverse=True)
    assert len(times) == 10
    assert seconds < LONGEST
