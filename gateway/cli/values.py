"""The types of values that options and arguments take."""

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
    """Returns `no level (did you mean BASIC?)`, or a list of all that it can be."""
    # imported here, as it brings the YAML reader, which a correct command line does not need
    from adapters.documents.problems import did_you_mean

    known = list(known)
    return f"no {kind}" + (did_you_mean(word, known) or f"; it can be {', '.join(known)}")


class TextValue(click.ParamType[Any]):
    """A type whose values `read` makes of texts; `known` are all texts that it takes, if few."""

    def __init__(self, name: str, read: Callable[[str], Any], known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = tuple(known)
        self.read = read

    def get_missing_message(self, param: Any, ctx: Any) -> str | None:
        """Returns what click prints after `Missing option ...`."""
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
    """Returns a type that takes one of a few words, which `make` converts."""
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
