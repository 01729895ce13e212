"""Makes what the parts of a cluster share in secret: one folder per part, once."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from urllib.parse import quote

from examples.launch import with_account, with_database

HERE = Path(__file__).resolve().parent
# Who reads each part's folder in its container, by its image.
READERS = {"gateway": 10001, "postgres": 999, "redis": 10001}
CONFIGURATION = Path("gateway", "gateway.yaml")
SEALING = Path("gateway", "sealing.secret")
SUPERUSER = Path("postgres", "password")
REDIS = Path("redis", "redis.conf")


class Incomplete(Exception):
    """Some files of an earlier start are there and others are not."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the parts of a cluster find one another; the defaults are those of compose.yaml.

    `postgres` and `redis` are addresses without an account, `proxy` is whom the gateways trust,
    `practice` the folder of the mapping and the policies. `store` and `clinic` name the databases;
    the accounts are called after them.
    """

    postgres: str = "postgresql://postgres:5432"
    redis: str = "redis:6379"
    proxy: str = "172.31.254.10"
    practice: str = "/practice"
    public_url: str = "http://127.0.0.1:8080"
    store: str = "store"
    clinic: str = "practice_slots"


def make(folder: Path, places: Places, readers: Mapping[str, int] | None = None) -> bool:
    """Every file, each readable by its owner alone; False where all of them were there already.

    `readers` are the users to whom the files are given. Incomplete.
    """
    wanted = (SUPERUSER, REDIS, SEALING, CONFIGURATION)
    there = [each for each in wanted if (folder / each).exists()]
    # The configuration is written last: without it nothing has used the others yet.
    if CONFIGURATION in there:
        if missing := sorted({str(each) for each in wanted} - set(map(str, there))):
            raise Incomplete(f"{', '.join(missing)} is gone, though a cluster was made with it")
        return False
    for path, text in _texts(places).items():
        _write(folder / path, text, (readers or {}).get(path.parts[0]))
    return True


def _texts(places: Places) -> dict[Path, str]:
    """What stands in each file; a password of its own for each account."""
    password = secrets.token_urlsafe(24)
    template = Template((HERE / "redis.conf").read_text("utf-8"))
    return {
        SUPERUSER: secrets.token_urlsafe(24) + "\n",
        REDIS: template.substitute(password=password),
        SEALING: secrets.token_hex(32) + "\n",
        CONFIGURATION: _configuration(places, f"redis://:{password}@{places.redis}/0"),
    }


def _configuration(places: Places, redis: str) -> str:
    template = Template((HERE / CONFIGURATION.name).read_text("utf-8"))
    return template.substitute(
        public_url=places.public_url,
        proxy=places.proxy,
        redis=redis,
        store=_account(places, places.store),
        backend=_account(places, places.clinic),
        practice=places.practice,
    )


def _account(places: Places, database: str) -> str:
    """The address of a database, with the name and a new password of the gateway's account."""
    url = with_database(places.postgres, quote(database))
    return with_account(url, f"{database}_gateway", secrets.token_urlsafe(24))


def _write(path: Path, text: str, reader: int | None) -> None:
    """The whole file or none; nobody but its reader ever reads it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if reader is not None:
        os.chown(beside, reader, reader)
    beside.rename(path)
