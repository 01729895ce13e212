"""The documented list, the figures of a real gateway, the dashboard and the alarms: they agree."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from adapters.base import Query, Record
from gateway.observe.metrics import FIGURES
from gateway.pipeline.shedder import KEY
from gateway.settings import CacheSettings
from tests.conftest import Begin, RunningGateway
from tests.policies import TEXT
from tests.tables import ROOT, samples
from tests.world import SOME_ID, World

PAGE = (ROOT / "docs" / "operations.md").read_text()
BOARD = json.loads((ROOT / "examples" / "grafana.json").read_text())
ALARMS = ROOT / "examples" / "alerts.yaml"
# What Prometheus adds to what it scrapes.
ADDED = {"job", "instance", "le"}


def listed() -> dict[str, set[str]]:
    """The documented figures with their labels."""
    table = PAGE.partition("<!-- metrics -->")[2].partition("<!-- /metrics -->")[0]
    found = {}
    for row in table.strip().splitlines()[2:]:
        name, _, labels, *_ = (cell.strip() for cell in row.strip("|").split("|"))
        found[name.strip("`")] = set(re.findall(r"`(\w+)`", labels))
    return found


async def scraped(session: aiohttp.ClientSession, gateway: RunningGateway) -> dict[str, set[str]]:
    """The figures that there are, each with the labels of its samples."""
    async with session.get(gateway.operations + "/metrics") as response:
        assert response.status == 200
        text = await response.text()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = figure_of(sample.name)
            found.setdefault(name, set()).update(sample.labels.keys() - {"le"})
    return found


def figure_of(sample: str) -> str:
    """The name of the figure of which this is a sample; an error where there is none."""
    [name] = [each for each in FIGURES if sample in samples(each)]
    return name


async def test_a_gateway_that_has_seen_everything_tells_just_what_is_documented(
    partner_of: Begin, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    def odd(query: Query) -> Record:
        return {"id": SOME_ID, "status": "NOBODY KNOWS"}

    policy = tmp_path / "own.yaml"
    policy.write_text(TEXT)
    world, cache = World(one=odd), CacheSettings(list_stock=5)
    partner = await partner_of(world, cache=cache, policy=policy)
    await partner.get(f"/patients/{SOME_ID}")
    await partner.get("/stock")
    await partner.get("/nowhere")
    await partner.anonymous().get("/stock")
    await (await partner.with_key(limit=0)).get("/stock")
    partner.gateway.gateway.public.runner.server.limiter.on_refusal("address")
    partner.gateway.gateway.public.front.pipeline.shedder._events.report(
        "calls_turned_away", reason=KEY
    )
    policy.write_text("version: 1\n")
    await partner.gateway.gateway.keeper.look(asked=True)
    found = await scraped(session, partner.gateway)
    assert found == listed()


def test_the_kinds_and_names_follow_prometheus_conventions() -> None:
    for name, figure in FIGURES.items():
        assert re.fullmatch(r"(gateway|process)_[a-z_]+", name)
        assert name.endswith("_total") == (figure.kind == "counter"), name
        assert name.endswith("_info") == (figure.kind == "info"), name
        assert (figure.kind == "histogram") == bool(figure.buckets)
        if figure.kind == "histogram":
            assert name.endswith("_seconds")


def queries() -> Iterator[tuple[str, str]]:
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            asked = variable["definition"]
            yield variable["name"], re.sub(r"label_values\((.*), \w+\)", r"\1", asked)
    for rule in rules():
        yield rule["alert"], rule["expr"]


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALARMS.read_text())["groups"]
    return list(group["rules"])


_selector = re.compile(r"\b((?:gateway|process)_\w+|up)\b(?:\{([^}]*)\})?")
_grouped = re.compile(r"\bby \(([^)]*)\)")


@pytest.mark.parametrize(("title", "query"), list(queries()))
def test_a_query_names_figures_and_labels_that_there_are(title: str, query: str) -> None:
    labels, named = set(ADDED), 0
    for name, chosen in _selector.findall(_grouped.sub("", query)):
        named += 1
        if name != "up":
            figure = FIGURES[figure_of(name)]
            labels |= set(figure.labels)
            kind = "[" in query and figure.kind != "gauge"
            assert ("rate(" in query or "increase(" in query) == kind or "changes(" in query, title
        own = {each.partition("=")[0].strip().rstrip("!~") for each in chosen.split(",") if each}
        assert own <= labels, title
    assert named, title
    for grouped in _grouped.findall(query):
        assert {each.strip() for each in grouped.split(",")} <= labels, title
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|__rate_interval|histogram_quantile', "", query)
    for word in re.findall(r"\w+_\w+", _grouped.sub("", bare)):
        assert figure_of(word), title


def test_every_figure_is_on_the_dashboard() -> None:
    shown = " ".join(each["expr"] for panel in BOARD["panels"] for each in panel.get("targets", ()))
    for figure in FIGURES:
        assert any(re.search(rf"\b{name}\b", shown) for name in samples(figure)), figure


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    assert BOARD["schemaVersion"] >= 36
    assert "id" not in BOARD  # an import of somebody else's number would write over theirs
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & taken, panel["title"]
        taken |= own
        if panel["type"] != "row":
            assert panel["targets"]
            assert panel["datasource"]["uid"] == "${datasource}"


def test_every_alarm_has_its_paragraph_and_every_paragraph_its_alarm() -> None:
    page = PAGE.partition("\n## Alarms\n")[2].partition("\n## ")[0]
    form = re.compile(r"^### (\w+)\n\n(.+?)(?=\n###|\Z)", re.MULTILINE | re.DOTALL)
    paragraphs = dict(form.findall(page))
    assert list(paragraphs) == [each["alert"] for each in rules()]
    for rule in rules():
        assert len(paragraphs[rule["alert"]]) > 120
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        name = rule["alert"].lower()
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{name}"
        assert rule["annotations"]["summary"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool comes with Prometheus")
def test_prometheus_takes_the_alarms(tmp_path: Path) -> None:
    checked = subprocess.run(
        ["promtool", "check", "rules", ALARMS], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
