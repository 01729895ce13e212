"""What is compared with a whole gateway is the same road without what stands beside it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.features import FEATURES
from bench.load import Load
from bench.servers import Server
from bench.shares import AUDIT, CLIENTS, INDEX, LACKING, PLAIN, WHOLE, Cost, measured, table
from bench.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("bench"), ())
    for name in (WHOLE, PLAIN):
        made.config(slot(name))
    return made


def slot(name: str) -> str:
    return f"lacking-{list(LACKING).index(name)}"


@pytest.mark.long
@pytest.mark.parametrize("name", [WHOLE, PLAIN])
def test_a_plain_read_leaves_nothing_behind_and_a_whole_one_its_lines(
    world: World, name: str
) -> None:
    config, port = world.config(slot(name))
    with Server("without", str(config), port, *LACKING[name]) as server:
        load = Load(port, CLIENTS, world.secret(slot(name)))
        load.run(32)
        load.close()
        assert measured(server, world.secret(slot(name)), 32) > 0
        server.settle()
    # two runs of 32, and one before the measure, on connections of their own
    expected = 32 + 16 + 32 if name == WHOLE else 0
    state = config.parent / f"state-{slot(name)}"
    assert sum(1 for _ in lines(state / "access.jsonl")) == expected
    [day] = (state / "audit").glob("*.jsonl")
    entries = [each for each in lines(day) if "outcome" in each]
    assert len(entries) == expected
    shown = {record for each in entries for record in each["recordIds"]}
    assert shown == ({path.rpartition("/")[2] for path in CLIENTS[:48]} if expected else set())


def lines(path: Path) -> Iterator[dict[str, object]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def test_the_verdict_goes_by_the_rounds_own_ratios() -> None:
    plain = [Cost(40, 0), Cost(80, 0), Cost(40, 0)]
    for factor, audit, said in ((1.2, 1.15, ["holds"] * 2), (1.3, 1.15, ["OVER", "OVER"])):
        costs = {
            PLAIN: plain,
            WHOLE: [Cost(each.calls * (factor - 0.05), each.calls * 0.05) for each in plain],
            AUDIT: [Cost(each.calls * audit, 0) for each in plain],
        }
        found = list(table(costs))
        assert [each.rpartition(" ")[2] for each in found if "at most" in each] == said
        assert f"{factor - 1:.1%} of a plain read" in found[2]
    costs |= {each: plain for each in FEATURES if each != AUDIT}
    told = [each.strip() for each in table(costs) if each.startswith("  ")]
    assert len(told) == len(FEATURES) + 1
    assert all(any(each.startswith(name) for each in told) for name in (*FEATURES, INDEX))
