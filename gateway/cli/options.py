"""The words of the command line: groups, what a value may be, options that commands share."""

import asyncio
import gc
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.cli.output import fail, has_controls
from gateway.cli.run import Run
from gateway.contract.access import AccessLevel
from gateway.contract.resources import GOVERNED

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_CONFIG = "gateway.config"
LONGEST_LINE = 8192


def config_option(command: CommandT) -> CommandT:
    """`--config FILE`, for groups and commands: what stands further right counts."""

    def keep(context: click.Context, _: click.Parameter, value: Path | None) -> None:
        if value is not None:
            context.meta[_CONFIG] = value

    return click.option(
        "--config",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=keep,
        expose_value=False,
        metavar="FILE",
        help="The configuration; gateway.yaml in this folder where there is one.",
    )(command)


def with_run(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--config FILE`; the command, which may be a coroutine function, is given its Run.

    What refuses it becomes a sentence on stderr and exit 1.
    """

    @wraps(command)
    def begin(as_json: bool = False, **options: Any) -> None:
        run = Run(click.get_current_context().meta.get(_CONFIG), as_json)
        with said_plainly():
            begun = command(run, **options)
            if inspect.iscoroutine(begun):
                asyncio.run(begun)

    return config_option(begin)


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--config FILE` and `--json`, as `with_run`."""
    json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    return with_run(json_option(command))


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


def typed(what: str, *, twice: bool = False) -> str:
    """A secret that a person types unseen, else the first line on stdin."""
    if sys.stdin.isatty():
        return str(click.prompt(what, hide_input=True, confirmation_prompt=twice, err=True))
    return sys.stdin.buffer.readline(LONGEST_LINE).decode("utf-8", "replace").rstrip("\r\n")


class CommandGroup(click.Group):
    """Commands below one name, with `--config FILE`, where a near miss is told what was meant.

    Those of `loads`, as `module:name`, are imported when they are asked for.
    """

    def __init__(self, *args: Any, loads: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.loads = dict(loads or {})
        config_option(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.loads, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.loads or cmd_name in self.commands:
            return super().get_command(ctx, cmd_name)
        module, _, name = self.loads[cmd_name].partition(":")
        # nothing that is imported is garbage: to look for some in between would cost a seventh
        collects = gc.isenabled()
        gc.disable()
        try:
            command: click.Command = getattr(import_module(module), name)
        finally:
            if collects:
                gc.enable()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"{args[0]} is {unknown('command', args[0], known)}")
        return super().resolve_command(ctx, args)


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """`no level (did you mean BASIC?)`, or all that it can be."""
    # imported only now: it brings the YAML reader, which no sound command line needs
    from adapters.documents.problems import did_you_mean

    known = list(known)
    return f"no {kind}" + (did_you_mean(word, known) or f"; it can be {', '.join(known)}")


class TextValue(click.ParamType[Any]):
    """What `read` makes of a text; its ValueError is wrong use. `known` are all that it takes."""

    def __init__(self, name: str, read: Callable[[str], Any], known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = tuple(known)
        self.read = read

    def get_missing_message(self, param: Any, ctx: Any) -> str | None:
        """What stands behind `Missing option ...`."""
        return f"It can be {', '.join(self.known)}" if self.known else None

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self.read(str(value))
        except ValueError as error:
            words = str(value).replace(",", " ").split()
            if len(words) > 1 and getattr(param, "multiple", False):
                repeated = " ".join(f"{param.opts[0]} {word}" for word in words)
                self.fail(f"repeat the option, one word each: {repeated}", param, ctx)
            self.fail(str(error), param, ctx)


def one_of(name: str, known: Iterable[str], make: Callable[[str], Any] = str) -> TextValue:
    """One of a few words; `make` turns it into what the command takes."""
    words = list(map(str, known))

    def read(text: str) -> Any:
        if text not in words:
            raise ValueError(f"{text} is {unknown(name.lower(), text, words)}")
        return make(text)

    return TextValue(name, read, words)


LEVEL = one_of("LEVEL", AccessLevel, AccessLevel)
RESOURCES = {resource.name: resource for resource in GOVERNED}
RESOURCE = one_of("RESOURCE", RESOURCES, RESOURCES.__getitem__)


def scopes_option(text: str) -> Callable[[CommandT], CommandT]:
    """`--scope RESOURCE=LEVEL`, repeatable: the level by the resource's name, each named once."""

    def read(word: str) -> tuple[str, AccessLevel]:
        resource, _, level = word.partition("=")
        if not resource or not level:
            raise ValueError(f"{word} must be RESOURCE=LEVEL, such as patients=STANDARD")
        return RESOURCE.read(resource).name, LEVEL.read(level)

    def each_once(_: click.Context, __: click.Parameter, scopes: Any) -> dict[str, AccessLevel]:
        names = [resource for resource, _ in scopes]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise click.BadParameter(f"{', '.join(doubled)} is named twice; give it one level")
        return dict(scopes)

    kind: Any = {"type": TextValue("RESOURCE=LEVEL", read), "callback": each_once}
    return click.option("--scope", "scopes", multiple=True, help=text, **kind)


def _one_line(text: str) -> str:
    if has_controls(text):
        raise ValueError("write it without control characters, in one line")
    return text


ONE_LINE = TextValue("TEXT", _one_line)
