"""The door of the engines: addresses as people write them, and sentences for all others."""

import importlib.util
from typing import Any

import pytest

from adapters.sql.engines import open_engine, wrong_with

UNKNOWN = (
    "begins with oracle, which is not known: use one of sqlite, postgresql, mysql, mariadb, mssql"
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


@pytest.mark.parametrize(
    ("scheme", "extra"),
    [("postgresql", "postgres"), ("mysql", "mysql"), ("mariadb", "mysql"), ("mssql", "mssql")],
)
def test_a_driver_that_is_not_installed_is_named_by_its_extra(
    monkeypatch: pytest.MonkeyPatch, scheme: str, extra: str
) -> None:
    def none(*_: Any) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", none)
    said = f"needs a driver that is not installed: pip install 'clinic-gateway[{extra}]'"
    assert wrong_with(f"{scheme}://h/clinic") == [said]
