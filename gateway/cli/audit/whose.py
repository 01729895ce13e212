"""Whose doings `clinic-gateway audit key` tells: a key by its id or its name."""

from gateway.audit.completeness import State
from gateway.audit.questions import has_called
from gateway.cli.audit.opened import notes_of
from gateway.cli.keys import one_named
from gateway.cli.options import fail
from gateway.keys.store import KeyStore
from gateway.store import Store

GONE, ODD = "a key that is gone", "a key of which the store makes no sense"


async def key_named(store: Store, wanted: str, state: State) -> tuple[str, str | None, str]:
    """Its id, its name, and what to call it without one; else the end of the command.

    A key that is gone has no name, and is known by what it did.
    """
    listing = await KeyStore(store).list()
    keys = [key for key, _ in listing.keys]
    if wanted not in {each.id for each in keys}:
        if wanted in listing.odd:
            return wanted, None, ODD
        if await has_called(store, wanted):
            return wanted, None, GONE
        if wanted not in {each.name for each in keys}:
            fail("\n".join([_nobody(wanted), *notes_of(state)]))
    key = one_named(keys, wanted)
    return key.id, key.name, key.name


def _nobody(wanted: str) -> str:
    return (
        f"no key has the id or the name {wanted}, and the audit knows no such id:"
        " clinic-gateway keys list shows them"
    )
