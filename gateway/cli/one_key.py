"""The one key that a command is about, which names it by its id or its name."""

from collections.abc import Sequence

from gateway.cli.lines import legible
from gateway.cli.options import fail
from gateway.keys.key import Key


def one_named(keys: Sequence[Key], name: str) -> Key:
    """The key with that id, or the only one with that name; else the end of the command."""
    found = [key for key in keys if key.id == name] or [key for key in keys if key.name == name]
    if not found:
        fail(
            f"no key has the id or the name {legible(name)}; `clinic-gateway keys list` shows them"
        )
    if len(found) > 1:
        ids = ", ".join(key.id for key in found)
        fail(f"{len(found)} keys have the name {legible(name)}; name one by its id: {ids}")
    return found[0]
