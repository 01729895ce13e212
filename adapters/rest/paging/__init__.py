"""How a backend parts a long list, and where in it we are: ways to go through it, in batches.

A place is a short text: the number or cursor of a row or page, and a mark of the last row that was
used. Going on, what was used is looked for again, so that rows which moved are neither lost nor
read twice.
"""

from collections.abc import Callable, Mapping
from typing import Any

from adapters.mapping.models import Paging
from adapters.rest.paging.base import (
    MOST_ROWS,
    Ask,
    Barren,
    Batch,
    Endless,
    NoArray,
    Pager,
    Params,
    may_be_empty,
)
from adapters.rest.paging.cursors import Cursors
from adapters.rest.paging.numbered import Numbers, Offsets
from adapters.rest.paging.whole import Whole

__all__ = [
    "MOST_ROWS",
    "Ask",
    "Barren",
    "Batch",
    "Endless",
    "NoArray",
    "Pager",
    "Params",
    "may_be_empty",
    "pager",
]

_STYLES: Mapping[str, Callable[..., Pager]] = {
    "offset": Offsets,
    "page": Numbers,
    "cursor": Cursors,
    "link": Cursors,
}


def pager(
    paging: Paging | None, items: Callable[[Any], Any], mark: Callable[[Any], Any], label: str
) -> Pager:
    """The way through a list that pages so; without paging everything is in one answer."""
    if paging is None:
        return Whole(items, mark, label)
    return _STYLES[paging.by](paging, items, mark, label)
