"""`clinic-gateway proxy`: the file of a proxy that fits the configuration."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.cli.options import config_option, fail, json_option
from gateway.cli.words import Group

if TYPE_CHECKING:
    from gateway.edge.site import Site
    from gateway.settings import Settings

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_FILES = "/etc/clinic-gateway/gateway"
_plain_address = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)?:[0-9]{1,5}", re.ASCII).fullmatch
_plain_path = re.compile(r"/[\w./@+-]+", re.ASCII).fullmatch


@click.group(cls=Group)
def proxy() -> None:
    """Print the configuration of a proxy that fits the gateway's own."""


def _path(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _plain_path(value):
        raise click.BadParameter("must be an absolute path of letters, digits and . _ - @ + /")
    return value


def _address(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and (not _plain_address(value) or int(value.rpartition(":")[2]) > 65535):
        raise click.BadParameter("must be an address such as :443 or 10.0.0.5:443")
    return value


def _file_option(name: str, ending: str, what: str) -> Callable[[CommandT], CommandT]:
    return click.option(
        name,
        metavar="FILE",
        callback=_path,
        help=f"{what}, if public_url begins with https://; by default {_FILES}.{ending}.",
    )


def _proxy_options(command: CommandT) -> CommandT:
    """The options of every kind of proxy."""
    for add in (
        click.option(
            "--listen",
            metavar="ADDRESS",
            callback=_address,
            help="Where partners reach the proxy; by default the port of public_url.",
        ),
        click.option(
            "--node",
            "named",
            multiple=True,
            metavar="NAME=HOST[:PORT[/OPERATIONS_PORT]]",
            help="A gateway behind the proxy (repeatable); by default the one on this machine.",
        ),
        json_option,
        config_option,
    ):
        command = add(command)
    return command


@proxy.command()
@_proxy_options
@_file_option("--certificate", "pem", "The certificate, its chain and its key, in one file")
def haproxy(certificate: str | None, **given: Any) -> None:
    """Print a haproxy.cfg."""
    _print("haproxy", {"certificate": (certificate, f"{_FILES}.pem")}, **given)


@proxy.command()
@_proxy_options
@_file_option("--key", "key", "The key of the certificate")
@_file_option("--certificate", "crt", "The certificate and its chain")
def nginx(certificate: str | None, key: str | None, **given: Any) -> None:
    """Print an nginx.conf."""
    _print(
        "nginx",
        {"certificate": (certificate, f"{_FILES}.crt"), "key": (key, f"{_FILES}.key")},
        **given,
    )


def _print(
    program: str,
    tls: Mapping[str, tuple[str | None, str]],
    *,
    config: Path | None,
    as_json: bool,
    named: tuple[str, ...],
    listen: str | None,
) -> None:
    """Print the file, and warnings on stderr; exit 1 if the settings cannot work behind a proxy.

    `tls` has the files of TLS, as they were given and by default.
    """
    from gateway.edge.obstacles import warnings
    from gateway.edge.rendering import rendered
    from gateway.settings import load_settings

    settings = load_settings(config)
    site = _site(settings, named, listen, _files(tls))
    if given := [f"--{name}" for name, (path, _) in tls.items() if path and not site.certificate]:
        raise click.UsageError(f"{given[0]} needs a public_url that begins with https://")
    told = list(warnings(settings, site))
    for each in told:
        click.echo(f"warning: {each}", err=True)
    text = rendered(program, site)
    shown = {"program": program, "warnings": told, "configuration": text}
    click.echo(json.dumps(shown, indent=2) if as_json else text, nl=as_json)


def _site(
    settings: "Settings", named: tuple[str, ...], listen: str | None, tls: Mapping[str, str]
) -> "Site":
    """What the file is made of; exit 1 with everything that is in the way."""
    from gateway.edge.node import named_node, node_here
    from gateway.edge.obstacles import in_the_way, obstacles
    from gateway.edge.site import Place, site_of

    try:
        nodes = [named_node(each, settings) for each in named] or [node_here(settings)]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--node") from error
    if found := list(obstacles(settings, nodes)):
        fail("\n".join(found))
    site = site_of(settings, nodes, Place(listen=listen, **tls))
    if found := list(in_the_way(site)):
        fail("\n".join(found))
    return site


def _files(tls: Mapping[str, tuple[str | None, str]]) -> dict[str, str]:
    return {name: path or default for name, (path, default) in tls.items()}
