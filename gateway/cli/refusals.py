"""Turns what may go wrong in a command into one sentence on stderr and exit 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from gateway.cli.options import fail


@contextmanager
def said_plainly() -> Iterator[None]:
    """What refuses a start says why; what is a fault of ours stays one."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        # imported only now: a command that succeeds need not wait for any of it
        from adapters.base import AdapterError
        from adapters.documents.problems import DocumentErrors
        from gateway.settings import StartRefused
        from gateway.store import StoreError

        if isinstance(error, AdapterError):
            fail(f"the practice system cannot be read: {error}")
        if not isinstance(error, DocumentErrors | StartRefused | StoreError):
            raise
        fail(str(error))
