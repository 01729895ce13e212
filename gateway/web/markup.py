"""Pieces of HTML that the pages for partners are made of: what is said is text, never markup."""

import re
from collections.abc import Iterable
from html import escape


def table(heads: Iterable[str], rows: Iterable[tuple[str, ...]], name: str = "") -> str:
    """A table that scrolls by itself where it is too wide; heads and cells are markup.

    With a name it can be reached, and so scrolled, without a mouse.
    """
    reached = f' tabindex="0" role="group" aria-label="{escape(name)}"' if name else ""
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return (
        f'<div class="wide"{reached}><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def code(text: str) -> str:
    """As code."""
    return f"<code>{escape(text)}</code>"


def inline(text: str) -> str:
    """A line in which ticks stand for code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def prose(text: str) -> str:
    """Paragraphs and lists with a dash, the two forms that the document's texts take."""
    blocks = []
    for block in text.strip().split("\n\n"):
        if block.startswith("- "):
            items = "".join(f"<li>{inline(line[2:])}</li>\n" for line in block.splitlines())
            blocks.append(f"<ul>\n{items}</ul>\n")
        else:
            blocks.append(f"<p>{inline(block)}</p>\n")
    return "".join(blocks)
