"""What all parts of the adapter are made with."""

from dataclasses import dataclass

from adapters.base import Report, Shapes
from adapters.rest.backend import Backend
from adapters.rest.places import Places
from adapters.rest.records import FoundValues
from adapters.rest.templates import Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """Shared by the readers and the diary; `timeout` is all that one read may take."""

    shapes: Shapes
    values: FoundValues
    templates: Templates
    backend: Backend
    places: Places
    report: Report
    timeout: float
