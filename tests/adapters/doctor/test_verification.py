"""Figures of a practice that speaks JSON: counted through all pages, or not at all."""

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from adapters.base import BackendUnavailable, Query, Record
from adapters.doctor.figures import EXAMPLE, read_figures
from adapters.doctor.outcome import Figure, Outcome
from adapters.doctor.verification import verified
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import ZONE
from gateway.backend import shapes
from tests.adapters.clinic import NOW
from tests.adapters.rest.cloud import connect, replaced
from tests.adapters.shelf import Shelf


async def figures(adapter: RestAdapter, folder: Path, text: str) -> dict[str, Figure]:
    file = folder / "figures.yaml"
    file.write_text(text)
    said, document = read_figures(file, shapes())
    return {it.figure: it async for it in verified(adapter, said, document, ZONE, NOW)}


async def found(
    url: str, folder: Path, text: str, change: Callable[[str], str] = lambda text: text
) -> dict[str, Figure]:
    async with aclosing(connect(url, folder, change, ids=Shelf(), timeout=60.0)) as adapter:
        return await figures(adapter, folder, text)


async def test_all_pages_of_each_list_are_counted(cloud: Cloud, url: str, tmp_path: Path) -> None:
    owners = cloud.records.owners
    for number in range(1_000, 1_450):
        owners[number] = owners[1] | {"mail": f"new{number}@example.org", "archived": False}
    living = sum(not owner["archived"] for owner in owners.values())
    cats = sum(animal["species"] == "cat" for animal in cloud.records.animals.values())
    vets = sum(not vet["retired"] for vet in cloud.records.vets.values())
    bill = next(iter(cloud.records.bills.values()))
    text = f"""\
clients: {living}
patients: {{total: {len(cloud.records.animals)}, species: {{Chat: {cats}}}}}
vets: {vets}
invoices: {{list: [{{number: "{bill["ref"]}", status: PAID}}]}}
"""
    told = await found(url, tmp_path, text)
    assert living > 450
    named = ("clients: total", "patients: total", "patients: species Chat", "vets: total")
    assert [told[name].outcome for name in named] == [Outcome.AGREES] * 4
    assert told[f"invoice {bill['ref']}: status"].served in ("PAID", "ISSUED")


async def test_a_day_is_that_of_the_clinics_clock_without_what_was_cancelled(
    cloud: Cloud, url: str, tmp_path: Path
) -> None:
    visits = cloud.records.visits
    day = next(iter(visits.values()))["starts_at"][:10]
    there = [it for it in visits.values() if it["starts_at"][:10] == day]
    living = [it for it in there if it["state"] != "cancelled"]
    text = f"appointments: [{{day: {day}, total: {len(living)}}}]\n"
    [figure] = (await found(url, tmp_path, text)).values()
    assert figure.outcome is Outcome.AGREES, figure
    living[0]["state"] = "cancelled"
    [figure] = (await found(url, tmp_path, text)).values()
    assert (figure.outcome, figure.served) == (Outcome.DIFFERS, len(living) - 1)


async def test_without_a_list_nothing_is_counted_and_that_is_red(url: str, tmp_path: Path) -> None:
    change = replaced(("    list: {get: /visits, items: visits} ", "    #"))
    text = "appointments: [{day: 2026-03-04, total: 0}]\n"
    [figure] = (await found(url, tmp_path, text, change)).values()
    assert figure.outcome is Outcome.UNSEEN
    assert "the mapping has no list of appointments" in figure.text


async def test_a_practice_system_that_does_not_answer_is_red(tmp_path: Path) -> None:
    text = "clients: 3\nvets: 2\n"
    told = await found("http://127.0.0.1:1/v2", tmp_path, text)
    assert [figure.outcome for figure in told.values()] == [Outcome.UNSEEN] * 2
    assert all("could not be looked at: " in figure.text for figure in told.values())


async def test_a_name_that_cannot_be_read_is_not_a_difference(
    cloud: Cloud, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = next(it for it in cloud.records.visits.values() if it["state"] == "booked")
    begins = visit["starts_at"]
    vet = cloud.records.vets[visit["vet"]]["label"]
    text = f"diary: [{{vet: '{vet}', day: {begins[:10]}, appointments: ['{begins[11:16]} Rex']}}]\n"

    async def silent(query: Query) -> Record:
        raise BackendUnavailable("it answers 503")

    async with aclosing(connect(url, tmp_path, timeout=60.0)) as adapter:
        monkeypatch.setattr(adapter, "read_one", silent)
        [figure] = (await figures(adapter, tmp_path, text)).values()
    assert figure.outcome is Outcome.UNSEEN, figure
    assert "it answers 503" in figure.text


def test_the_example_names_every_part_that_a_file_may_have() -> None:
    said, _ = read_figures(EXAMPLE, shapes())
    assert said.model_fields_set == set(type(said).model_fields) - {"consultations"}


def test_the_figures_of_the_page_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "connecting.md").read_text("utf-8")
    shown = page.partition("<!-- figures -->\n```yaml\n")[2].partition("```")[0]
    file = tmp_path / "figures.yaml"
    file.write_text(shown)
    said, _ = read_figures(file, shapes())
    assert said.diary


async def test_a_vet_of_a_list_may_be_named_by_a_part_that_fits_no_other(
    cloud: Cloud, url: str, tmp_path: Path
) -> None:
    labels = ("Dr Lind", "Dr Moss", "Dr Mossberg", "Dr Lind-Berg")
    first = next(iter(cloud.records.vets.values()))
    cloud.records.vets = {
        number: first | {"label": label, "retired": False} for number, label in enumerate(labels, 1)
    }
    text = "vets: {names: [Dr Lind, Moss, Mossberg, Berg]}\n"
    figure = (await found(url, tmp_path, text))["vets: names"]
    assert figure.outcome is Outcome.AGREES, figure
