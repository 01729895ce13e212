"""The comparison with peers: each does the work that it is compared for, and the sums are right."""

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.peers import targets
from bench.peers.check import cases, faults_of
from bench.peers.farm import Farm, free_port
from bench.peers.installed import lua_modules, missing, nginx
from bench.peers.rounds import one_round
from bench.peers.samples import Sample, added, percentile, ratios, spread
from bench.peers.scenarios import RECORDS, Scenario
from bench.peers.tables import HEAD, details, summary
from bench.peers.targets import BARE, DIRECT, GATEWAY, LACKS, NGINX, Target
from tests.tables import README

pytestmark = pytest.mark.skipif(find_spec("uvloop") is None, reason="install uvloop")


def needs_nginx() -> None:
    if nginx() is None or lua_modules() is None:
        pytest.skip(f"nginx with Lua: {missing()['nginx']}")


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    with ExitStack() as stack:
        yield Farm(tmp_path_factory.mktemp("peers"), stack)


@pytest.fixture(scope="module")
def backend(farm: Farm) -> int:
    return targets.start_backend(farm).addresses["uncached"].port


@pytest.mark.long
def test_the_gateway_does_its_work_with_and_without_a_cache(farm: Farm, backend: int) -> None:
    [target] = targets.start_gateway(farm, backend)
    assert set(target.addresses) == {"uncached", "cached"}
    assert faults_of(target) == []


@pytest.mark.long
def test_nginx_does_its_work_in_all_three_ways(farm: Farm, backend: int) -> None:
    needs_nginx()
    words = targets.nginx_words(farm.folder, free_port(), backend)
    tried = subprocess.run([*words, "-t"], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    found = list(targets.start_nginx(farm, backend))
    assert [set(each.addresses) for each in found] == [{"uncached", "cached"}, {"cached"}]
    assert [fault for each in found for fault in faults_of(each)] == []


@pytest.mark.long
def test_who_does_no_work_is_told_of_all_of_it(farm: Farm) -> None:
    [bare] = targets.start_bare(farm, 0)
    assert faults_of(bare) == []
    posing = Target(name="posing", addresses={"cached": bare.addresses["cached"]})
    told = {each.split(": ")[1] for each in faults_of(posing)}
    work = {each.name for each in cases(posing)} - {each.name for each in cases(bare)}
    assert told == work
    assert len(work) == 7


@pytest.mark.long
def test_an_open_loop_counts_what_is_no_200(farm: Farm) -> None:
    direct = targets.start_backend(farm)
    paths = (*RECORDS[:3], "/clients/de1c1f7e-4f1a-4d7e-9a9b-000000000000")
    scenario = Scenario(variant="uncached", paths=paths, without="", rate=40)
    sample = one_round(scenario, [direct], 1, farm.folder)[DIRECT]
    assert (sample.requests, sample.bad) == (40, 10)
    assert 0 < sample.p50 <= sample.p99
    assert sample.cpu > 0


def sample(rate: int, p50: float = 1.0, bad: int = 0) -> Sample:
    return Sample(requests=rate * 3, seconds=3, bad=bad, p50=p50, p99=p50 * 2, cpu=10)


# In the second round the machine is slow, and so are all.
ROUNDS = [
    {DIRECT: sample(900, 0.5), BARE: sample(1000), NGINX: sample(1500), GATEWAY: sample(300, 1.5)},
    {DIRECT: sample(90, 5.0), BARE: sample(100), NGINX: sample(150), GATEWAY: sample(20, 6.5)},
    {DIRECT: sample(900, 0.5), BARE: sample(1000), NGINX: sample(500), GATEWAY: sample(250, 1.5)},
]


def test_figures_are_set_against_those_of_the_same_round() -> None:
    against = ratios(ROUNDS, GATEWAY, BARE, lambda each: each.rate)
    assert against == pytest.approx([0.3, 0.2, 0.25])
    assert spread(against, ".2f") == "0.25 (0.20 to 0.30)"
    assert added(ROUNDS, GATEWAY, DIRECT, lambda each: each.p50) == pytest.approx([1, 1.5, 1])
    assert ratios(ROUNDS, GATEWAY, "nobody", lambda each: each.rate) == []
    assert spread([], ".2f") == "-"


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([*range(100, 0, -1)], 0.99) == 99
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert math.isnan(percentile([], 0.5))


def test_errors_make_a_row_no_result() -> None:
    results = {"record": ROUNDS, "latency": ROUNDS}
    held = {BARE: "40 MB", GATEWAY: "90 MB"}
    assert list(summary(results, held))[-1] == (
        f"| {GATEWAY} | 0.25 (0.20 to 0.30) | - | - | - | - | - | 1.00 ms (1.00 to 1.50)"
        f" | 90 MB | {LACKS[GATEWAY]} |"
    )
    wrong = [*ROUNDS[:2], {**ROUNDS[2], GATEWAY: sample(250, bad=2)}]
    told = list(summary({"record": wrong, "latency": ROUNDS}, held))
    assert told[-1].startswith(f"| {GATEWAY} | no result | - ")
    assert told[-2].startswith(f"| {BARE} | 1 | - ")
    assert [each.endswith("| 2: no result |") for each in details(wrong)][-1]


def test_what_is_missing_is_told_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = missing()
    assert found["wrk"] == "apt-get install wrk"
    assert found["Fastify"].startswith("apt-get install nodejs npm")


def test_the_readme_has_a_row_for_each_and_says_what_it_lacks() -> None:
    block = README.read_text().partition("<!-- peers -->\n")[2].partition("<!-- /peers -->")[0]
    head, _, *rows = [each for each in block.splitlines() if each.startswith("|")]
    assert head == HEAD
    told = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    assert {row[0]: row[-1] for row in told} == LACKS
    assert {len(row) for row in told} == {HEAD.count("|") - 1}
    assert "no result" not in block


@pytest.mark.long
def test_the_tool_checks_all_and_measures_what_it_is_told() -> None:
    words = [sys.executable, "-m", "bench.peers", "latency", "--force"]
    words += ["--runs", "2", "--rounds", "1", "--seconds", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"{GATEWAY}: does its work") == 2
    assert HEAD in done.stdout
