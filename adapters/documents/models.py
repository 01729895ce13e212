"""A file's data as a pydantic model, and what it lacks said in the words of who wrote the file."""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from adapters.documents.document import Document, Place, is_number
from adapters.documents.problems import DocumentErrors, Problem, did_you_mean

ModelT = TypeVar("ModelT", bound=BaseModel)


def check(document: Document, model: type[ModelT], *, strict: bool = False) -> ModelT:
    """The document as a pydantic model; DocumentErrors with every problem at its place.

    Where it is strict no kind of value counts for another; a text may still be a path.
    """
    try:
        if strict:
            return model.model_validate_json(json.dumps(document.data), strict=True)
        return model.model_validate(document.data)
    except ValidationError as error:
        raise DocumentErrors(_model_problems(document, model, error)) from error


def _model_problems(
    document: Document, model: type[BaseModel], error: ValidationError
) -> Iterator[Problem]:
    at: dict[Place, list[Any]] = {}
    for told in error.errors(include_url=False):
        place: Place = ()  # without the names of union members that pydantic puts between
        for part in told["loc"]:
            place = (*place, part) if (*place, part) in document.marks else place
        at.setdefault(place, []).append(told)
    for place, found in at.items():
        kinds = {told["type"] for told in found}
        if kinds <= _SCALARS.keys() and any(other[: len(place)] == place != other for other in at):
            continue  # of a list, one member of a union says that it is none; the other knows more
        if len(found) > 1 and kinds <= _PLAIN:  # one value, that no member of a union took
            wanted = list(dict.fromkeys(_SCALARS[kind] for kind in _SCALARS if kind in kinds))
            more = "" if kinds <= _SCALARS.keys() else ", or a list"
            yield document.problem(place, f"{_name(place)}: must be {', '.join(wanted)}{more}")
        else:
            yield from (
                said for told in found if (said := _model_problem(document, model, place, told))
            )


def _model_problem(
    document: Document, model: type[BaseModel], place: Place, error: Any
) -> Problem | None:
    """One error in our words; None for what may stand in a part that was left out."""
    name = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        text = f"{name} is not known here{_remedy(error['loc'], model)}"
        return document.problem(place, text, at_key=True)
    if error["type"] == "missing":
        if place in document.partial:
            return None
        fields = (it for part in _models_at(error["loc"], model) for it in _fields(part))
        examples = [
            f", such as {name}: {info.examples[0]}"
            for known, info in fields
            if known == name and info.is_required() and info.examples
        ]
        return document.problem(place, f"{name} is missing{''.join(examples[:1])}", at_key=True)
    return document.problem(place, f"{_name(place) or name}: {sentence(error)}")


def _name(place: Place) -> str:
    """What a value is called: its own name, or that of the list in which it stands."""
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _remedy(place: Place, model: type[BaseModel]) -> str:
    """What to write instead of an unknown name; a name of a group's own leads into the group."""
    name = str(place[-1])
    group, _, inner = name.rpartition(".")
    for other, info in _fields(model) if len(place) == 1 else ():
        members = [
            member for kind in _models_named_in(info.annotation) for member, _ in _fields(kind)
        ]
        if group == other:
            near = "" if inner in members else did_you_mean(inner, members)
            return f": indent {inner} under {group}:{near}"
        if name in members and isinstance(info.annotation, type):
            return f": indent it under {other}:"
    every = {known for part in models_in(model) for known, _ in _fields(part)} - {name}
    own = [known for part in _models_at(place, model) for known, _ in _fields(part)]
    return did_you_mean(name, own) or did_you_mean(name, every)


def _models_at(place: Place, model: type[BaseModel]) -> list[type[BaseModel]]:
    """The models that may stand where the last name of the place does."""
    found = [model]
    for part in place[:-1]:
        fields = [field for at in found for field in at.model_fields.items()]
        named = [info for name, info in fields if part in (name, info.alias)]
        if named:
            found = [inner for info in named for inner in _models_named_in(info.annotation)]
    return found


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """The fields of a model, by the names that a file has."""
    for name, info in model.model_fields.items():
        yield info.alias or name, info


# What pydantic says in its own words, said in the words of who writes the file.
_WORDS: dict[str, str] = {
    "string_type": "must be a text",
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    "bool_type": "must be true or false",
    **dict.fromkeys(("dict_type", "model_type"), "must be a group of names and values"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    "path_type": "must be a path",
}
# What a plain value can be, in the order in which it is said.
_SCALARS: dict[str, str] = {
    "string_type": "a text",
    "int_type": "a number",
    "float_type": "a number",
    "bool_type": "true or false",
}
_LISTS = frozenset({"list_type", "tuple_type"})
_PLAIN = _SCALARS.keys() | _LISTS
# A text that can be shown as the item of a list as it is.
_WORD = re.compile(r"[\w.:/-]{1,40}").fullmatch


def sentence(error: Any) -> str:
    """What is wrong, of one of pydantic's errors, to stand behind the name."""
    kind, given = error["type"], error["input"]
    if kind == "string_type" and isinstance(given, int | float):
        return "must be a text: put it in quotes"
    if kind in {"int_type", "float_type"} and isinstance(given, str) and is_number(given):
        return f"{_WORDS[kind]}: leave the quotes out"
    if kind in _LISTS and isinstance(given, dict):
        return f"{_WORDS[kind]}: begin each of its items with `- `"
    if kind in _LISTS and isinstance(given, str) and _WORD(given):
        return f"{_WORDS[kind]}: write [{given}]"
    if kind in _WORDS:
        return _WORDS[kind]
    said: str = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return said[:1].lower() + said[1:]


def models_in(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model, and all that its fields are made of."""
    found: list[type[BaseModel]] = []
    pending = [model]
    while pending:
        current = pending.pop()
        if current not in found:
            found.append(current)
            for _, info in _fields(current):
                pending.extend(_models_named_in(info.annotation))
    return found


def _models_named_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [model for part in parts for model in _models_named_in(part)]
