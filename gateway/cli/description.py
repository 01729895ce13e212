"""`clinic-gateway openapi`, `settings` and `proxy`: print what follows from the configuration."""

import re
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from pydantic import SecretStr

from gateway.backend import booking_window
from gateway.cli.command import Command, Run, option
from gateway.cli.output import fail, say, say_json
from gateway.cli.values import LEVEL, TextValue, one_of
from gateway.contract.access import AccessLevel, Permission
from gateway.contract.openapi import document
from gateway.contract.operations import OPERATIONS
from gateway.edge import site as edge
from gateway.policy.reading.document import load_policy
from gateway.settings import Settings, names, sources, variable
from gateway.settings.kinds import split_address
from gateway.state import store_place

MASKED = "********"
_FILES = "/etc/clinic-gateway/gateway"
# Proxy -> the TLS files that it reads, and where they are by default.
_TLS_FILES = {
    "haproxy": {"certificate": f"{_FILES}.pem"},
    "nginx": {"certificate": f"{_FILES}.crt", "key": f"{_FILES}.key"},
}
_plain_address = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)?:([0-9]{1,5})", re.ASCII).fullmatch
# Options behind the ? of an address whose names are those of secrets.
_secret_options = re.compile(
    r"([?&;][^=&;]*(?:pwd|pass|secret|token|key)[^=&;]*=)[^&]*", re.IGNORECASE
).sub
_plain_path = re.compile(r"/[\w./@+-]+", re.ASCII).fullmatch


@click.command(cls=Command)
@option("--level", LEVEL, "Only the fields that this level sees; all of them where it is left out.")
@option(
    "--permission permissions",
    one_of("PERMISSION", Permission, Permission),
    "Only the operations that this permission grants (repeatable).",
    multiple=True,
)
def openapi(run: Run, level: AccessLevel | None, permissions: tuple[Permission, ...]) -> None:
    """Print the OpenAPI 3.1 document, as JSON.

    It is the whole interface, or what a key with a level and permissions sees of it. A running
    gateway also leaves out the operations and filters that its practice system can't serve.
    """
    settings = run.settings
    policy = load_policy(settings.policy, lambda trouble: None)

    described = document(
        public_url=settings.public_url_at(split_address(settings.listen)[1]),
        visible=lambda resource: policy.view(resource, level) if level else None,
        offered=[it for it in OPERATIONS if not permissions or it.permission in permissions],
        window=booking_window(settings),
    )
    say_json(described, indent=2)


@click.command("settings", cls=Command)
def print_settings(run: Run) -> None:
    """Print every setting with its value in force; secrets are masked.

    A value comes from the environment, from the file, or is the default.
    """
    source, rows, lines = sources(run.config), [], []
    for name, summary in names():
        value = _shown(attrgetter(name)(run.settings))
        if name == "store":
            value = store_shown(run.settings)
        about = {"source": source[name], "help": summary, "variable": variable(name)}
        rows.append({"name": name, "value": value, **about})
        lines.append(f"{name}: {'' if value is None else value}")
        lines += [f"    {summary}", f"    {variable(name)} (now: {source[name]})"]
    run.say(rows, lines, indent=2)


def store_shown(settings: Settings) -> Any:
    """Returns where the gateway's own database is, without a password."""
    return _shown(settings.store or store_place(settings))


def _shown(value: Any) -> Any:
    """Returns a value as it may be shown: an address without password, other secrets masked."""
    if not isinstance(value, SecretStr):
        return str(value) if isinstance(value, Path) else value
    scheme, separator, rest = value.get_secret_value().partition("://")
    if not separator:
        return MASKED
    credentials, at, place = rest.rpartition("@")
    user = credentials.partition(":")[0]
    shown = f"{scheme}://{user}:{MASKED}@{place}" if at else f"{scheme}://{rest}"
    return _secret_options(rf"\1{MASKED}", shown)


def _path(text: str) -> str:
    if not _plain_path(text):
        raise ValueError("must be an absolute path of letters, digits and . _ - @ + /")
    return text


def _address(text: str) -> tuple[str, int]:
    match = _plain_address(text)
    if match is None or int(match[2]) > 65535:
        raise ValueError("must be an address such as :443 or 10.0.0.5:443")
    return (match[1] or "").strip("[]"), int(match[2])


@click.command(cls=Command)
@click.argument("program", type=one_of("PROGRAM", _TLS_FILES), metavar="PROGRAM")
@option(
    "--listen",
    TextValue("ADDRESS", _address),
    "Where partners reach the proxy; by default the port of public_url.",
)
@option(
    "--node named",
    TextValue("NAME=HOST[:PORT[/OPERATIONS_PORT]]", str),
    "A gateway behind the proxy (repeatable); by default the one on this machine.",
    multiple=True,
)
@option(
    "--certificate",
    TextValue("FILE", _path),
    "The certificate and its chain, for haproxy with its key in the same file, if public_url"
    f" begins with https://; by default {_FILES}.crt, for haproxy {_FILES}.pem.",
)
@option(
    "--key",
    TextValue("FILE", _path),
    "The key of the certificate, for nginx, if public_url begins with https://; by default"
    f" {_FILES}.key.",
)
def proxy(run: Run, program: str, named: Sequence[str], listen: Any, **files: str | None) -> None:
    """Print the configuration of a proxy that fits the gateway's own.

    PROGRAM is haproxy or nginx. Warnings are on stderr; exit 1 if the settings cannot work behind a
    proxy.
    """
    settings, defaults = run.settings, _TLS_FILES[program]
    given = [name for name, path in files.items() if path]
    if unused := [name for name in given if name not in defaults]:
        raise click.UsageError(f"{program} has no --{unused[0]}: its certificate's file holds it")
    try:
        nodes = [edge.named_node(text, settings) for text in named] or [edge.node_here(settings)]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--node") from error
    if obstacles := list(edge.obstacles(settings, nodes)):
        fail("\n".join(obstacles))
    tls = {name: files[name] or default for name, default in defaults.items()}
    site = edge.site_of(settings, nodes, listen, tls)
    if obstacles := list(edge.site_obstacles(site)):
        fail("\n".join(obstacles))
    if given and not site.certificate:
        raise click.UsageError(f"--{given[0]} needs a public_url that begins with https://")
    notes = list(edge.warnings(settings, site))
    say(*(f"warning: {note}" for note in notes), err=True)
    text = edge.render(program, site)
    if run.as_json:
        say_json({"program": program, "warnings": notes, "configuration": text}, indent=2)
    else:
        click.echo(text, nl=False)
