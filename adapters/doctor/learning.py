"""Learns the `booking` of a mapping from appointments that the practice's own desk has made."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from adapters.base import Adapter
from adapters.doctor import mapped_by


class Unlearnable(Exception):
    """Raised where no booking can be learnt; the text says why, and what to do."""


async def booking_of(adapter: Adapter, keys: Sequence[str], newest: int) -> tuple[str, Any]:
    """Returns the YAML that the appointments with these keys teach, and its parts as data.

    Without keys they are the newest. Raises Unlearnable, or an AdapterError.
    """
    if mapped_by(adapter) != "adapters.sql.adapter":
        raise Unlearnable(
            "a booking can be learnt of a database alone, as calls over HTTP leave no rows: write"
            " its calls by the product's own description, and try them with backend check --booking"
        )
    # other backends do without SQLAlchemy
    lesson = await import_module("adapters.doctor.sql.learning").learned(adapter, keys, newest)
    written = import_module("adapters.doctor.sql.lesson")
    text: str = written.yaml_of(lesson)
    return text, written.data_of(lesson) | {"yaml": text}
