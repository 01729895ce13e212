"""The words of the command line: options that commands share, groups, what a value may be."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from gateway.cli.lines import has_controls, legible
from gateway.contract.access import AccessLevel
from gateway.contract.resources import GOVERNED

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


def shared_options(command: CommandT) -> CommandT:
    """`--config FILE` and `--json`."""
    return config_option(json_option(command))


def fail(text: str, code: int = 1) -> NoReturn:
    """Says why not on stderr, in as many lines as the text has, and exits with that code."""
    click.echo("\n".join(map(legible, text.split("\n"))), err=True)
    raise click.exceptions.Exit(code)


@contextmanager
def said_plainly() -> Iterator[None]:
    """Turns what refuses a command into a sentence on stderr and exit 1; our own faults stay."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        # imported only now: a command that succeeds need not wait for any of it
        from adapters.base import AdapterError
        from adapters.documents.problems import DocumentErrors
        from gateway.settings import StartRefused
        from gateway.store import StoreError

        if isinstance(error, AdapterError):
            fail(f"the practice system cannot be read: {error}")
        if not isinstance(error, DocumentErrors | StartRefused | StoreError):
            raise
        fail(str(error))


class CommandGroup(click.Group):
    """Commands below one name, where a near miss is told what was meant.

    Those of `loads`, as `module:name`, are imported when they are asked for.
    """

    def __init__(self, *args: Any, loads: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.loads = dict(loads or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.loads, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.loads and cmd_name not in self.commands:
            return _loaded(self.loads[cmd_name])
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"{args[0]} is {unknown('command', args[0], known)}")
        return super().resolve_command(ctx, args)


def _loaded(place: str) -> click.Command:
    module, _, name = place.partition(":")
    # nothing that is imported is garbage: to look for some in between would cost a seventh
    collects = gc.isenabled()
    gc.disable()
    try:
        command: click.Command = getattr(import_module(module), name)
    finally:
        if collects:
            gc.enable()
    return command


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """`no level (did you mean BASIC?)`, or all that it can be."""
    # imported only now: it brings the YAML reader, which no sound command line needs
    from adapters.documents.problems import did_you_mean

    known = list(known)
    return f"no {kind}" + (did_you_mean(word, known) or f"; it can be {', '.join(known)}")


class OneOf(click.ParamType[Any]):
    """One of a few words; `make` turns it into what the command takes."""

    def __init__(
        self, name: str, known: Iterable[str], make: Callable[[str], Any] | None = None
    ) -> None:
        self.name = name
        self.known = list(map(str, known))
        self._make = make or str

    def get_missing_message(self, param: Any, ctx: Any) -> str:
        """What stands behind `Missing option ...`."""
        return f"It can be {', '.join(self.known)}"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        _check_one_at_a_time(self, value, param, ctx)
        if str(value) not in self.known:
            kind = self.name.lower()
            self.fail(f"{value} is {unknown(kind, str(value), self.known)}", param, ctx)
        return self._make(value)


def _check_one_at_a_time(kind: click.ParamType[Any], value: Any, param: Any, ctx: Any) -> None:
    """Wrong use where a repeatable option is given several words at once."""
    words = str(value).replace(",", " ").split()
    if len(words) > 1 and getattr(param, "multiple", False):
        repeated = " ".join(f"{param.opts[0]} {word}" for word in words)
        kind.fail(f"repeat the option, one word each: {repeated}", param, ctx)


LEVEL = OneOf("LEVEL", AccessLevel, AccessLevel)
RESOURCE = OneOf("RESOURCE", [resource.name for resource in GOVERNED])


class Scope(click.ParamType[Any]):
    """`resource=LEVEL`."""

    name = "RESOURCE=LEVEL"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, AccessLevel]:
        _check_one_at_a_time(self, value, param, ctx)
        resource, _, level = str(value).partition("=")
        if not resource or not level:
            self.fail(f"{value} must be RESOURCE=LEVEL, such as patients=STANDARD", param, ctx)
        return RESOURCE.convert(resource, param, ctx), LEVEL.convert(level, param, ctx)


class TextValue(click.ParamType[Any]):
    """What `read` makes of a text; its ValueError is wrong use."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self._read(str(value))
        except ValueError as error:
            return self.fail(str(error), param, ctx)


class OneLine(click.ParamType[Any]):
    """A text that can be shown in one line."""

    name = "TEXT"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        if has_controls(str(value)):
            self.fail("write it without control characters, in one line", param, ctx)
        return str(value)
