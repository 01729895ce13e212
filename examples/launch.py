"""Starts an example with one command: its database, an account of few rights, then the gateway."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from urllib.parse import urlsplit, urlunsplit

import click

from adapters.wrappers.connection_errors import reason
from gateway.cli.command import said_plainly
from gateway.cli.demo import demo
from gateway.cli.output import fail

# Whose errors are the server's.
DRIVERS = ("asyncpg", "asyncmy", "pymysql")


@dataclass(frozen=True, kw_only=True)
class Example:
    """A practice system that can be made on a server.

    `folder` holds its mapping, policies and the template of a gateway.yaml. `exists` and
    `generate` take the database's address; `admit` also an account's name and password, makes
    that account or gives it the new password, and grants it what the gateway needs.
    """

    name: str
    folder: Path
    server: str
    exists: Callable[[str], bool]
    generate: Callable[[str, float], None]
    admit: Callable[[str, str, str], None]

    def command(self) -> click.Command:
        """The example's command line."""

        @click.command(
            help="Make the practice where there is none, and serve it. Any further options are"
            " those of `clinic-gateway demo`: --port, --operations-port, --json.",
            context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        )
        @click.option(
            "--server",
            default=self.server,
            show_default=True,
            help="Where it is made, as an account that may make databases and accounts.",
        )
        @click.option(
            "--database", default=self.name, show_default=True, help="What it is called there."
        )
        @click.option(
            "--state",
            type=click.Path(file_okay=False, path_type=Path),
            help="The gateway's folder; .demo/ and the database's name where it is left out.",
        )
        @click.option("--scale", type=float, default=1.0, show_default=True, help="How big it is.")
        @click.pass_context
        def start(
            context: click.Context, server: str, database: str, state: Path | None, scale: float
        ) -> None:
            folder = state or Path(".demo") / database
            with said_plainly():
                with server_troubles():
                    example = replace(self, name=database)
                    configuration = prepare(example, server, folder, scale=scale)
                demo(["--config", str(configuration), *context.args])

        return start


@contextmanager
def server_troubles() -> Iterator[None]:
    """What a server, or the driver before it, refuses is one sentence and exit 1."""
    try:
        yield
    except Exception as error:
        driver = type(error).__module__.partition(".")[0] in DRIVERS
        if not driver and not isinstance(error, OSError):
            raise
        why = reason(error)
        if why is not None:
            fail(f"the server can't be reached: {why}; see --server")
        code = getattr(error, "sqlstate", None) or type(error).__name__
        fail(f"the practice can't be made on the server ({code}); see --server and --state")


def prepare(example: Example, server: str, state: Path, *, scale: float = 1.0) -> Path:
    """The state folder's gateway.yaml; it, the account and the database are made if need be."""
    url = with_database(server, example.name)
    if not example.exists(url):
        example.generate(url, scale)
    for each in (state.parent, state):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    configuration = state / "gateway.yaml"
    if not configuration.exists():
        password = secrets.token_urlsafe(18)
        account = f"{example.name}_gateway"
        example.admit(url, account, password)
        text = (example.folder / "gateway.yaml").read_text("utf-8")
        shown = Template(text).substitute(
            url=with_account(url, account, password), here=example.folder
        )
        with os.fdopen(os.open(configuration, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(shown)
    return configuration


def with_database(server: str, name: str) -> str:
    """A server's address, and the name of a database on it."""
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


def with_account(url: str, account: str, password: str) -> str:
    """The same address for another account."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{account}:{password}@{host}"))
