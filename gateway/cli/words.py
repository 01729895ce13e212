"""Words of which only some are known, commands too: a near miss is told what was meant."""

from collections.abc import Callable, Iterable
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
    """Commands below one name."""

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
    from adapters.problems import did_you_mean

    known = list(known)
    return f"no {kind}" + (did_you_mean(word, known) or f"; it can be {', '.join(known)}")
