"""Defines what all commands share: groups, options, and the Run that each command is given.

Whatever a command changes is a deed. The audit has it before it is done, under the system account.
"""

import asyncio
import gc
import inspect
import os
import pwd
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.cli.output import fail, problem_data, say, say_json
from gateway.cli.values import FILE, FLAG, LEVEL, RESOURCE, TextValue, unknown
from gateway.contract.access import AccessLevel

if TYPE_CHECKING:  # slow to import: only commands that open a store do so
    from gateway.settings import Settings
    from gateway.store import Store

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
# Makes the context in which a deed is done, from the deed, its subject and details: Deeds.deed.
RecordDeed = Callable[..., AbstractAsyncContextManager[dict[str, Any]]]
# The file with the user who logged in, whom su and sudo keep; the number that stands for nobody.
_LOGIN, _NOBODY = Path("/proc/self/loginuid"), 2**32 - 1
_CONFIG = "gateway.config"
LONGEST_LINE = 8192


def option(
    names: str, kind: click.ParamType[Any], text: str, **more: Any
) -> Callable[[CommandT], CommandT]:
    """Returns a decorator that adds an option, of a kind of value or a FLAG, with its help text."""
    more |= {"is_flag": True} if kind is FLAG else {"type": kind}
    return click.option(*names.split(), help=text, show_default="default" in more, **more)


def _keep(context: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        context.meta[_CONFIG] = value


# For groups and commands. The last one on the command line counts.
_config_option = option(
    "--config",
    FILE,
    "The configuration; gateway.yaml in this folder where there is one.",
    callback=_keep,
    expose_value=False,
)


class Command(click.Command):
    """A command with `--config FILE` and `--json`, whose function is given a Run first.

    The function may be a coroutine function. A refusal becomes a sentence on stderr and exit 1.
    """

    def __init__(self, *, callback: Callable[..., Any], has_json: bool = True, **more: Any) -> None:
        def begin(as_json: bool = False, **options: Any) -> None:
            run = Run(click.get_current_context().meta.get(_CONFIG), as_json)
            with said_plainly(as_json=as_json):
                begun = callback(run, **options)
                if inspect.iscoroutine(begun):
                    asyncio.run(begun)

        super().__init__(callback=begin, **more)
        _config_option(self)
        if has_json:
            option("--json as_json", FLAG, "Print JSON.")(self)


@contextmanager
def said_plainly(*, as_json: bool = False) -> Iterator[None]:
    """Turns refusals into a sentence on stderr, a file's also into JSON, and exit 1."""
    try:
        yield
    except Exception as error:
        # imported here, so that a command that succeeds does not wait for it
        from adapters.base import AdapterError
        from adapters.documents.problems import DocumentErrors
        from gateway.settings import StartRefused
        from gateway.store import StoreError

        if isinstance(error, AdapterError):
            fail(f"the practice system cannot be read: {error}")
        if not isinstance(error, DocumentErrors | StartRefused | StoreError):
            raise
        if as_json and isinstance(error, DocumentErrors):
            say_json({"ok": False, "problems": list(map(problem_data, error.problems))}, indent=2)
        fail(str(error))


def typed(what: str, *, twice: bool = False) -> str:
    """Returns a secret that a person types unseen, or else the first line on stdin."""
    if sys.stdin.isatty():
        return str(click.prompt(what, hide_input=True, confirmation_prompt=twice, err=True))
    return sys.stdin.buffer.readline(LONGEST_LINE).decode("utf-8", "replace").rstrip("\r\n")


class CommandGroup(click.Group):
    """Commands below one name, with `--config FILE`. A mistyped command is told what was meant.

    Those of `loads`, as `module:name`, are imported when they are called.
    """

    command_class = Command

    def __init__(self, *args: Any, loads: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.loads = dict(loads or {})
        _config_option(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.loads, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.loads or cmd_name in self.commands:
            return super().get_command(ctx, cmd_name)
        module, _, name = self.loads[cmd_name].partition(":")
        # imports leave no garbage, and looking for it meanwhile takes a seventh of their time
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


def scopes_option(text: str) -> Callable[[CommandT], CommandT]:
    """Returns the option `--scope RESOURCE=LEVEL`, repeatable, each resource once."""

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

    kind = TextValue("RESOURCE=LEVEL", read)
    return option("--scope scopes", kind, text, multiple=True, callback=each_once)


@dataclass(frozen=True)
class Run:
    """One run of a command: where its configuration is, and whether it prints JSON."""

    config: Path | None
    as_json: bool

    @cached_property
    def settings(self) -> "Settings":
        """The settings; raises DocumentErrors where the configuration is wrong."""
        from gateway.settings import load_settings

        return load_settings(self.config)

    @cached_property
    def own_settings(self) -> "Settings":
        """The same settings; raises StartRefused where nothing says where the state is."""
        from gateway.settings import check_own_place

        check_own_place(self.config)
        return self.settings

    def say(self, data: Any, lines: Iterable[str], *, indent: int | None = None) -> None:
        """Prints the data as JSON, or the lines for people."""
        if self.as_json:
            say_json(data, indent=indent)
        else:
            say(*lines)

    @asynccontextmanager
    async def store(
        self, where_none: str = "", code: int = 1, *, may_begin: bool = False
    ) -> AsyncIterator["Store"]:
        """Yields the configured store, which is made where there is none yet and it `may_begin`.

        Otherwise the command ends with `where_none` and the exit code, or without it StartRefused.
        """
        from gateway.state import opened, opened_if_begun

        settings = self.own_settings
        opening = opened_if_begun if where_none else partial(opened, may_begin=may_begin)
        async with opening(settings) as store:
            if store is None:
                fail(where_none, code)
            yield store

    @asynccontextmanager
    async def deed(
        self, store: "Store", deed: str, subject: str = "", **details: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Records what is done inside as a deed, and yields its details, which may be added to."""
        async with recording(self.settings, store) as begin, begin(deed, subject, **details) as of:
            yield of


@asynccontextmanager
async def recording(settings: "Settings", store: "Store") -> AsyncIterator[RecordDeed]:
    """Yields a recorder of deeds; ends the command where the audit cannot be written."""
    from gateway.audit.buffer import Unwritten
    from gateway.audit.chains import audit_folder
    from gateway.audit.journal import open_audit
    from gateway.inquiries.deeds import Deeds, Unended
    from gateway.observe.event_log import EventLog
    from gateway.state import hand_over

    folder = audit_folder(settings)
    try:
        async with open_audit(settings, store, EventLog(), now) as (audit, _):
            yield partial(Deeds(store, audit, now).deed, actor(), **_origin(store))
    except Unwritten as error:
        fail(f"the audit in {folder} cannot be written ({error}): nothing was done; free its disk")
    except Unended:
        fail(f"it is done, but the audit in {folder} could not take how it ended; free its disk")
    finally:
        hand_over(folder)


def actor() -> str:
    """Returns the name of this system account in the audit; administrators' have no colon."""
    return f"shell: {_name(os.getuid())}"


def _origin(store: "Store") -> dict[str, str]:
    """Returns the login behind another account, and the host where several share the store."""
    from gateway.audit.chains import Chains

    origin = {"host": socket.gethostname()} if Chains(store).shared else {}
    with suppress(OSError, ValueError):
        login = int(_LOGIN.read_text("ascii"))
        if login not in (_NOBODY, os.getuid()):
            origin["login"] = _name(login)
    return origin


def _name(account: int) -> str:
    try:
        return pwd.getpwuid(account).pw_name
    except KeyError:
        return str(account)


def now() -> datetime:
    """Returns this machine's time in UTC."""
    return datetime.now(UTC)
