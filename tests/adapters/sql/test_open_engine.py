"""The door of the engines: addresses as people write them, and sentences for all others."""

import importlib.util
import tomllib
from typing import Any

import pytest

from adapters.rest.client import address_problem
from adapters.sql.engines import KINDS, open_engine, wrong_with
from tests.tables import ROOT

UNKNOWN = (
    "begins with oracle, which is not known: use one of sqlite, postgresql, mysql, mariadb, mssql,"
    " odbc, firebird, access, dbf"
)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "https://cloud.example.org/api",
            "is no database's: what speaks https needs backend.adapter: rest",
        ),
        ("nonsense", "must be a database address such as sqlite:////srv/clinic.db"),
        ("oracle://h/clinic", UNKNOWN),
        ("postgresql+psycopg2://h/clinic", "must not name a driver: write postgresql://"),
        ("sqlite://", "must name the database's file, such as sqlite:////srv/clinic.db"),
        ("sqlite:////a.db?mode=ro", "takes nothing behind a ?; a ? in a path is written %3F"),
        (
            "postgresql://gateway:secret@h",
            "must name the database, such as postgresql://user:password@host/clinic",
        ),
        (
            "mysql://h/clinic?ssl_ca=/ca.pem&foo=bar",
            "has an option 'foo' that is not known: ssl_ca, ssl_capath, ssl_cert, ssl_key,"
            " ssl_cipher, ssl_check_hostname, unix_socket, charset are",
        ),
        ("mysql://h:port/x", "must be a database address such as sqlite:////srv/clinic.db"),
    ],
)
def test_an_address_that_leads_nowhere_is_a_sentence(url: str, said: str) -> None:
    assert wrong_with(url) == [said]
    with pytest.raises(ValueError, match="the database's address") as raised:
        open_engine(url, timeout=1, booking_timeout=1)
    assert str(raised.value) == f"the database's address {said}"
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("scheme", KINDS)
def test_whatever_knows_a_kind_of_database_knows_each(scheme: str) -> None:
    """The recipe of the README names these places; a kind that is new must stand in all."""
    said = "is a database's address: it needs backend.adapter: sql"
    assert address_problem(f"{scheme}://host/clinic") == said, "add it to adapters/rest/client.py"
    assert f"`{scheme}://" in (ROOT / "docs" / "connecting.md").read_text("utf-8")
    extra = KINDS[scheme].module
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    comes_along = extra == "sqlite"
    assert comes_along or extra in project["optional-dependencies"]
    assert comes_along or f".[{extra}]" in (ROOT / "README.md").read_text("utf-8")


def test_only_the_engines_ask_which_kind_of_database_it_is() -> None:
    """What a kind does in its own way, the Speech or the Lane of its one file says."""
    files = [*ROOT.glob("adapters/**/*.py")]
    asking = {file for file in files if "dialect.name" in file.read_text("utf-8")}
    assert asking == set()


@pytest.mark.parametrize(
    ("scheme", "extra"),
    [
        ("postgresql", "postgres"),
        ("mysql", "mysql"),
        ("mariadb", "mysql"),
        ("mssql", "mssql"),
        ("firebird", "firebird"),
    ],
)
def test_a_driver_that_is_not_installed_is_named_by_its_extra(
    monkeypatch: pytest.MonkeyPatch, scheme: str, extra: str
) -> None:
    def none(*_: Any) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", none)
    said = f"needs a driver that is not installed: pip install '.[{extra}]' in the clone's folder"
    assert wrong_with(f"{scheme}://h/clinic") == [f"{said} installs it"]
