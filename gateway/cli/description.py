"""`clinic-gateway openapi`, `settings` and `proxy`: what follows from the configuration."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import SecretStr

from gateway.backend import booking_window
from gateway.cli.options import (
    CommandGroup,
    CommandT,
    OneOf,
    TextValue,
    fail,
    shared_options,
)
from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.fields import Resource
from gateway.contract.openapi import View, document
from gateway.edge.obstacles import obstacles, site_obstacles, warnings
from gateway.edge.site import Site, named_node, node_here, render, site_of
from gateway.policy.reading.document import load_policy
from gateway.settings import Settings, load_settings, names, sources, split_address, variable
from gateway.state import store_place

MASKED = "********"
_FILES = "/etc/clinic-gateway/gateway"
_plain_address = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)?:[0-9]{1,5}", re.ASCII).fullmatch
_plain_path = re.compile(r"/[\w./@+-]+", re.ASCII).fullmatch


@click.command()
@click.option(
    "--level",
    type=OneOf("LEVEL", LEVELS, AccessLevel),
    help="Only the fields that this level sees; all of them where it is left out.",
)
@click.option(
    "--permission",
    "permissions",
    type=OneOf("PERMISSION", Permission, Permission),
    multiple=True,
    help="Only the operations that this permission grants (repeatable).",
)
@shared_options
def openapi(
    level: AccessLevel | None,
    permissions: tuple[Permission, ...],
    config: Path | None,
    as_json: bool,
) -> None:
    """Print the OpenAPI 3.1 document, as JSON.

    It is the whole interface, or what a key with a level and permissions sees of it. A running
    gateway also leaves out the filters that its practice system can't serve.
    """
    settings = load_settings(config)
    policy = load_policy(settings.policy, lambda trouble: None)

    def visible(resource: Resource) -> View | None:
        return policy.view(resource, level) if level else None

    described = document(
        public_url=settings.public_url_at(split_address(settings.listen)[1]),
        visible=visible,
        permissions=frozenset(permissions) or None,
        window=booking_window(settings),
    )
    click.echo(json.dumps(described, indent=2))


@click.command("settings")
@shared_options
def print_settings(config: Path | None, as_json: bool) -> None:
    """Print every setting with its value in force; secrets are masked.

    A value comes from the environment, from the file, or is the default.
    """
    rows = list(_settings_rows(load_settings(config), sources(config)))
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(f"{row['name']}: {'' if row['value'] is None else row['value']}")
        click.echo(f"    {row['help']}\n    {row['variable']} (now: {row['source']})")


def _settings_rows(settings: Settings, source: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for name, summary in names():
        value: Any = settings
        for part in name.split("."):
            value = getattr(value, part)
        yield {
            "name": name,
            "value": store_shown(settings) if name == "store" else _shown(value),
            "source": source[name],
            "help": summary,
            "variable": variable(name),
        }


def store_shown(settings: Settings) -> Any:
    """Where the gateway's own database is, without a password."""
    return _shown(settings.store or store_place(settings))


def _shown(value: Any) -> Any:
    """A database address without its password; of any other secret, nothing."""
    if not isinstance(value, SecretStr):
        return str(value) if isinstance(value, Path) else value
    scheme, separator, rest = value.get_secret_value().partition("://")
    if not separator:
        return MASKED
    credentials, at, place = rest.rpartition("@")
    user = credentials.partition(":")[0]
    return f"{scheme}://{user}:{MASKED}@{place}" if at else f"{scheme}://{rest}"


@click.group(cls=CommandGroup)
def proxy() -> None:
    """Print the configuration of a proxy that fits the gateway's own."""


def _path(text: str) -> str:
    if not _plain_path(text):
        raise ValueError("must be an absolute path of letters, digits and . _ - @ + /")
    return text


def _address(text: str) -> str:
    if not _plain_address(text) or int(text.rpartition(":")[2]) > 65535:
        raise ValueError("must be an address such as :443 or 10.0.0.5:443")
    return text


def _file_option(name: str, ending: str, what: str) -> Callable[[CommandT], CommandT]:
    return click.option(
        name,
        type=TextValue("FILE", _path),
        help=f"{what}, if public_url begins with https://; by default {_FILES}.{ending}.",
    )


def _proxy_options(command: CommandT) -> CommandT:
    """The options of every kind of proxy."""
    listen = click.option(
        "--listen",
        type=TextValue("ADDRESS", _address),
        help="Where partners reach the proxy; by default the port of public_url.",
    )
    node = click.option(
        "--node",
        "named",
        multiple=True,
        metavar="NAME=HOST[:PORT[/OPERATIONS_PORT]]",
        help="A gateway behind the proxy (repeatable); by default the one on this machine.",
    )
    return shared_options(node(listen(command)))


@proxy.command()
@_proxy_options
@_file_option("--certificate", "pem", "The certificate, its chain and its key, in one file")
def haproxy(certificate: str | None, **options: Any) -> None:
    """Print a haproxy.cfg."""
    _print_proxy("haproxy", {"certificate": (certificate, f"{_FILES}.pem")}, **options)


@proxy.command()
@_proxy_options
@_file_option("--key", "key", "The key of the certificate")
@_file_option("--certificate", "crt", "The certificate and its chain")
def nginx(certificate: str | None, key: str | None, **options: Any) -> None:
    """Print an nginx.conf."""
    tls = {"certificate": (certificate, f"{_FILES}.crt"), "key": (key, f"{_FILES}.key")}
    _print_proxy("nginx", tls, **options)


def _print_proxy(
    program: str,
    tls: Mapping[str, tuple[str | None, str]],
    *,
    config: Path | None,
    as_json: bool,
    named: tuple[str, ...],
    listen: str | None,
) -> None:
    """Prints the file, and warnings on stderr; exit 1 if the settings cannot work behind a proxy.

    `tls` has the files of TLS, as they were given and by default.
    """
    settings = load_settings(config)
    files = {name: path or default for name, (path, default) in tls.items()}
    site = _site(settings, named, listen, files)
    if given := [f"--{name}" for name, (path, _) in tls.items() if path and not site.certificate]:
        raise click.UsageError(f"{given[0]} needs a public_url that begins with https://")
    said = list(warnings(settings, site))
    for warning in said:
        click.echo(f"warning: {warning}", err=True)
    text = render(program, site)
    data = {"program": program, "warnings": said, "configuration": text}
    click.echo(json.dumps(data, indent=2) if as_json else text, nl=as_json)


def _site(
    settings: Settings, named: tuple[str, ...], listen: str | None, files: Mapping[str, str]
) -> Site:
    """What the file is made of; exit 1 with everything that is in the way."""
    try:
        nodes = [named_node(text, settings) for text in named] or [node_here(settings)]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--node") from error
    if found := list(obstacles(settings, nodes)):
        fail("\n".join(found))
    site = site_of(
        settings, nodes, listen, certificate=files["certificate"], key=files.get("key", "")
    )
    if found := list(site_obstacles(site)):
        fail("\n".join(found))
    return site
