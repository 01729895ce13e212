"""The options that all commands share, and the one way in which a command says no."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from gateway.cli.lines import legible

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_CONFIG = "gateway.config"


def _kept(context: click.Context, _: click.Parameter, value: Path | None) -> Path | None:
    """The path given here, else the one given further left on the command line."""
    if value is not None:
        context.meta[_CONFIG] = value
    kept: Path | None = context.meta.get(_CONFIG)
    return kept


def config_option(command: CommandT) -> CommandT:
    """`--config FILE`, for the group and for every command: the parameter `config`."""
    return click.option(
        "--config",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_kept,
        metavar="FILE",
        help="The configuration; gateway.yaml in this folder where there is one.",
    )(command)


def json_option(command: CommandT) -> CommandT:
    """`--json`: the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def fail(text: str, code: int = 1) -> NoReturn:
    """Say why not on stderr, in as many lines as the text has, and exit with that code."""
    click.echo("\n".join(map(legible, text.split("\n"))), err=True)
    raise click.exceptions.Exit(code)
