"""What a backend's records have and no field is made of is told by name, and by no value."""

from collections.abc import Callable
from pathlib import Path

from adapters.doctor.rest import survey
from adapters.rest.adapter import RestAdapter
from tests.adapters.rest.cloud import connect


async def left_out(adapter: RestAdapter) -> dict[str, tuple[str, ...]]:
    found = await survey(adapter)
    return {each.resource: each.names for each in found.left_out}


def without(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert text.count(old) == 1
        return text.replace(old, new)

    return change


async def test_a_member_that_no_field_is_made_of_is_named(adapter: RestAdapter) -> None:
    found = await left_out(adapter)
    assert "archived" in found["clients"]
    for path in ("href", "name", "name.first", "mail", "phones", "address", "address.street"):
        assert path not in found["clients"]


async def test_a_member_is_named_once_nothing_reads_it_any_more(url: str, tmp_path: Path) -> None:
    change = without("      email: mail\n", "")
    adapter = connect(url, tmp_path, change)
    assert "mail" in (await left_out(adapter))["clients"]
    filled = (await survey(adapter)).filled["clients"]
    assert "email" not in filled
    assert "lastName" in filled
    await adapter.aclose()


async def test_the_names_in_an_expression_count_as_read(url: str, tmp_path: Path) -> None:
    change = without("      firstName: name.first\n", "      firstName: name.first || archived\n")
    adapter = connect(url, tmp_path, change)
    assert "archived" not in (await left_out(adapter)).get("clients", ())
    await adapter.aclose()
