"""The mapping file of a practice system that speaks JSON over HTTP, as models.

What the models alone cannot see is checked in adapters/rest/checking.py; docs/connecting-json.md is
the reference.
"""

from adapters.rest.mapping.calls import (
    SOURCES,
    Call,
    Found,
    Kept,
    Many,
    One,
    Paged,
    Paging,
    Tree,
    Value,
)
from adapters.rest.mapping.diary import Booking, Diary, HoursCall, HoursWritten, Step, Times
from adapters.rest.mapping.resources import FilterBy, ListCall, ListOf, ResourceMap
from adapters.rest.mapping.whole import MEANINGS, Backend, ErrorRule, Login, Mapping

__all__ = [
    "MEANINGS",
    "SOURCES",
    "Backend",
    "Booking",
    "Call",
    "Diary",
    "ErrorRule",
    "FilterBy",
    "Found",
    "HoursCall",
    "HoursWritten",
    "Kept",
    "ListCall",
    "ListOf",
    "Login",
    "Many",
    "Mapping",
    "One",
    "Paged",
    "Paging",
    "ResourceMap",
    "Step",
    "Times",
    "Tree",
    "Value",
]
