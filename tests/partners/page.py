"""docs/partners.md in its parts: the text under a heading, and the blocks of code in it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "tests" / "clients"
PAGE = (ROOT / "docs" / "partners.md").read_text("utf-8")

_block = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_heading = re.compile(r"^(#{2,3}) (.+)$", re.MULTILINE)


def headings() -> list[str]:
    """The page's headings, those of parts within parts too; code has lines that look like some."""
    return [found[2] for found in _heading.finditer(_block.sub("", PAGE))]


def part(heading: str) -> str:
    """What stands between that heading and the next."""
    _, begin, rest = PAGE.partition(f"\n## {heading}\n")
    if not begin:
        _, begin, rest = PAGE.partition(f"\n### {heading}\n")
    assert begin, heading
    return re.split(r"^#{2,3} [A-Z]", rest, maxsplit=1, flags=re.MULTILINE)[0]


def blocks(heading: str, kind: str) -> list[str]:
    """The code of one kind under a heading."""
    return [code for name, code in _block.findall(part(heading)) if name == kind]


def lines(heading: str) -> list[str]:
    """The lines for a shell under a heading."""
    return "".join(blocks(heading, "sh")).replace("\\\n", " ").splitlines()


def rows(heading: str, head: str) -> list[list[str]]:
    """The cells of the table under a heading that has this head."""
    _, begin, rest = part(heading).partition(f"{head}\n")
    assert begin, head
    table = rest.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table]
