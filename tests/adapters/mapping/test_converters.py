"""Every name under `as` stands for a converter, and what each leaves out it has of its own."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from adapters.base import FieldShape
from adapters.mapping.conversion import PARAMETERS, Conversion
from adapters.mapping.converters import CONVERTERS, DEFAULTS, Converters
from adapters.mapping.explanation import explained
from adapters.mapping.models import ResourceMap
from adapters.sql.comparisons import COMPARED
from adapters.values.times import Later

# A value of each parameter.
GIVEN: dict[str, Any] = {
    "codes": {"C": "#FF0000"},
    "yes": ("O",),
    "no": ("N",),
    "separator": "/",
    "part": 2,
    "encoding": "cp1252",
    "longest": 80,
    "order": "bgr",
    "pattern": "%Y%m%d",
    "unit": "milliseconds",
    "zero": ("99999999",),
    "plus": "minutes",
    "of": "vets",
    "factor": 100,
}
# Converters of one column whose values are compared, but not by a condition of a database's.
NO_CONDITION = {
    "split text": "a condition is about one value, and this is a list of them",
    "colour": "it may be kept as a text or as a number, which only who reads it can tell",
}


def made(name: str, *, times_as_text: bool = True, **given: Any) -> Any:
    """The converter of that name, for a field of a format that it makes."""
    converters = Converters(
        ZoneInfo("Europe/Paris"), bytes(32), kinds={"vets": name}, times_as_text=times_as_text
    )
    needed = {"codes": GIVEN["codes"]} if name == "code" else {}
    said = Conversion(as_=name, **needed | given)
    shape = FieldShape(format=min(CONVERTERS[name].makes), refers="vets")
    return converters.make(said, shape, columns=2 if said.plus else 1)


def test_each_parameter_goes_with_a_converter_and_each_format_has_one() -> None:
    kinds = CONVERTERS.values()
    assert set().union(*(kind.takes for kind in kinds)) == set(PARAMETERS) == set(GIVEN)
    assert all(format_ in CONVERTERS[name].makes for format_, name in DEFAULTS.items())


@pytest.mark.parametrize("name", CONVERTERS)
def test_each_name_makes_a_converter_with_and_without_its_parameters(name: str) -> None:
    bare = made(name)
    assert bare.decode(None) is None
    takes = CONVERTERS[name].takes
    for parameter in takes - {"of", "part"} | (takes & {"part"} if "id" not in name else set()):
        full = made(name, **{parameter: GIVEN[parameter]})
        assert isinstance(full, Later) == (parameter == "plus")
        assert parameter == "codes" or full != bare, parameter
    assert made(name, **{each: GIVEN[each] for each in takes}) is not None


@pytest.mark.parametrize("name", CONVERTERS)
def test_each_converter_that_compares_has_its_condition_in_sql(name: str) -> None:
    kinds = {
        type(each)
        for as_text in (True, False)
        if (each := made(name, times_as_text=as_text)).compares
    }
    assert kinds <= COMPARED or name in NO_CONDITION
    assert not (kinds & COMPARED and name in NO_CONDITION)


@pytest.mark.parametrize(
    ("source", "null"),
    [
        ({"source": "x"}, "null, 0000-00-00, 1900-01-01, 1000-01-01"),
        ({"source": "x", "as": "epoch"}, "null, 0"),
        ({"source": "x", "as": "epoch", "plus": "minutes"}, "null, 0"),
        ({"source": "x", "as": "epoch", "zero": []}, "null"),
        ({"source": "x", "as": "epoch", "zero": ["-1"]}, "null, -1"),
    ],
)
def test_what_means_no_time_is_what_the_converter_says(source: dict[str, Any], null: str) -> None:
    fields = {"updatedAt": source, "name": "n"}
    mapped = ResourceMap.model_validate({"from": "t", "key": "id", "fields": fields})
    shapes = {"updatedAt": FieldShape(format="date-time"), "name": FieldShape(format="text")}
    told = {line.field: line.null for line in explained("clients", mapped, shapes)}
    assert told == {"updatedAt": null, "name": "null"}


def test_no_zero_says_that_nought_is_a_value() -> None:
    assert made("epoch").decode(0.0) is None
    assert made("epoch", zero=()).decode(0) == "1970-01-01T00:00:00Z"
