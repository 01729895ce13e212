"""Words of which only some are known, commands too: a near miss is told what was meant."""

import gc
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import click


class OneOf(click.ParamType[Any]):
    """One of a few words; `make` turns it into what the command takes."""

    def __init__(
        self, name: str, known: Iterable[str], make: Callable[[str], Any] | None = None
    ) -> None:
        self.name = name
        self.known = [str(each) for each in known]
        self._make = make or str

    def get_missing_message(self, param: Any, ctx: Any) -> str:
        """What stands behind `Missing option ...`."""
        return f"It can be {', '.join(self.known)}"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        one_at_a_time(self, value, param, ctx)
        if str(value) not in self.known:
            self.fail(
                f"{value} is {unknown(self.name.lower(), str(value), self.known)}", param, ctx
            )
        return self._make(value)


def one_at_a_time(kind: click.ParamType[Any], value: Any, param: Any, ctx: Any) -> None:
    """Wrong use where a repeatable option is given several words at once."""
    words = str(value).replace(",", " ").split()
    if len(words) > 1 and getattr(param, "multiple", False):
        option = param.opts[0]
        repeated = " ".join(f"{option} {word}" for word in words)
        kind.fail(f"repeat the option, one word each: {repeated}", param, ctx)


class Group(click.Group):
    """Commands below one name; those of `loads`, as `module:name`, are imported when asked for."""

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
