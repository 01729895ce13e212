"""Problems for people: the line, a caret under the word, and help once for each kind."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gateway.cli.lines import legible
from gateway.cli.policy.entries import Entry
from gateway.policy.reading.kinds import Severity

WIDEST = 100
_COLOURS = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.NOTE: "bold cyan",
}


def print_entries(entries: Sequence[Entry]) -> None:
    """Each on stderr, then how many there are; colours on a terminal only."""
    console, helped = Console(stderr=True, highlight=False), set[str]()
    for entry in entries:
        for line in _block(entry, with_help=entry.problem.code not in helped):
            console.print(line, soft_wrap=True)
        helped.add(entry.problem.code)
    console.print(Text(counted(entries)), soft_wrap=True)


def counted(entries: Sequence[Entry]) -> str:
    """`2 errors, 1 warning`; what there is none of is left out."""
    count = Counter(each.severity for each in entries)
    return ", ".join(_many(count[each], each) for each in Severity if count[each])


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _block(entry: Entry, *, with_help: bool) -> Iterator[Text]:
    problem, colour = entry.problem, _COLOURS[entry.severity]
    place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    kind = f"{entry.kind.severity}[{problem.code}]"
    yield Text.assemble((legible(place), "bold"), ": ", (kind, colour), ": ", legible(problem.text))
    number = f"{problem.line:5}" if problem.line else " " * 5
    if problem.line:
        shown, before, width = _window(entry)
        yield Text.assemble((f"{number} | ", "blue"), shown)
        yield Text.assemble(
            (" " * len(number) + " | ", "blue"), " " * before, ("^" * width, colour)
        )
    if with_help:
        yield Text.assemble((" " * len(number) + " = help: ", "blue"), entry.kind.help)


def _window(entry: Entry) -> tuple[str, int, int]:
    """What is shown of the line, and where and how wide its carets are, in cells."""
    source, start = entry.source, entry.problem.column - 1
    first = max(0, start - WIDEST // 2) if len(source) > WIDEST else 0
    shown = legible(source[first : first + WIDEST])
    before = cell_len(shown[: start - first])
    word = shown[start - first : entry.end - 1 - first]
    return shown, before, max(1, cell_len(word))
