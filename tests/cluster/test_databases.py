"""What a cluster's first start makes on its PostgreSQL, also where an earlier one was cut off."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from examples.cluster import databases, files
from examples.cluster.databases import UNFINISHED
from gateway.settings import load_settings
from tests.adapters.servers import execute, server
from tests.command import module


@dataclass(frozen=True)
class Made:
    """The configuration whose databases were made, and the superuser's address."""

    configuration: Path
    superuser: str
    places: files.Places


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    address, name = server("postgresql"), f"clinic_test_{uuid4().hex[:12]}"
    superuser = address.render_as_string(hide_password=False)
    folder = tmp_path_factory.mktemp("secrets")
    places = files.Places(
        postgres=f"postgresql://{address.host}:{address.port or 5432}",
        store=f"{name}_store",
        clinic=name,
    )
    files.make(folder, places)
    execute(superuser, f'CREATE DATABASE "{name}{UNFINISHED}"')  # as one that was cut off left it
    try:
        databases.make(folder / files.CONFIGURATION, superuser, scale=0.1)
        yield Made(folder / files.CONFIGURATION, superuser, places)
    finally:
        for each in (name + UNFINISHED, name, places.store):
            execute(superuser, f'DROP DATABASE IF EXISTS "{each}" WITH (FORCE)')
        for each in (name, places.store):
            execute(superuser, f'DROP ROLE IF EXISTS "{each}_gateway"')


def test_a_practice_that_was_cut_off_is_made_whole(made: Made) -> None:
    wanted = f"SELECT datname FROM pg_database WHERE datname LIKE '{made.places.clinic}%'"
    there = {name for (name,) in execute(made.superuser, wanted)}
    assert there == {made.places.clinic, made.places.store}
    url = load_settings(made.configuration, {}).backend.url
    assert url is not None
    [(appointments,)] = execute(url.get_secret_value(), 'SELECT count(*) FROM "Appointment"')
    assert appointments > 100


def test_it_may_be_made_again(made: Made) -> None:
    databases.make(made.configuration, made.superuser)


def test_the_practices_account_is_not_let_into_the_store(made: Made) -> None:
    settings = load_settings(made.configuration, {})
    assert settings.backend.url is not None
    url = settings.backend.url.get_secret_value().replace(made.places.clinic, "ACCOUNT", 1)
    store = url.replace(f"/{made.places.clinic}", f"/{made.places.store}")
    store = store.replace("ACCOUNT", made.places.clinic)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        asyncio.run(asyncpg.connect(store))


def test_a_server_that_cannot_be_reached_is_one_sentence(made: Made, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("x\n")
    words = ["--server", "postgresql://postgres@127.0.0.1:1", "--password-file", str(password)]
    done = module("examples.cluster", "databases", str(made.configuration), *words)
    assert done.returncode == 1
    assert "the server can't be reached" in done.stderr
    assert "Traceback" not in done.stderr
