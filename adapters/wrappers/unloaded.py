"""Keeps a library from importing another one that is of no use here."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(name: str) -> Iterator[None]:
    """Meanwhile that module cannot be imported, unless it has been already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # so that an import of it fails
    try:
        yield
    finally:
        del sys.modules[name]
