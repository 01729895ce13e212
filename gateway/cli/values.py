"""The kinds of values that options and arguments take."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from gateway.cli.output import legible
from gateway.contract.access import AccessLevel
from gateway.contract.resources import GOVERNED

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
FLAG = click.BOOL


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


def _one_line(text: str) -> str:
    if legible(text) != text:
        raise ValueError("write it without control characters, in one line")
    return text


ONE_LINE = TextValue("TEXT", _one_line)
