"""Makes a pydantic model of a file's data, and tells its errors in the words of the file."""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from adapters.documents.document import Document, Place, is_number
from adapters.documents.problems import DocumentErrors, Problem, did_you_mean, read_checks
from adapters.documents.yaml_errors import FILE_CHECKS

ModelT = TypeVar("ModelT", bound=BaseModel)
# How often a file is read again without what was wrong with it.
MOST_ROUNDS = 30
# Pydantic's types of errors that a part has which lacks something.
_OF_PARTS = frozenset({"value_error", "too_short"})
# All that such a file can fail, whatever its model.
MODEL_CHECKS = {**FILE_CHECKS, **read_checks(__file__, "models.toml")}


def check(
    document: Document, model: type[ModelT], *, strict: bool = False, context: object = None
) -> ModelT:
    """Returns the document as a pydantic model. Raises DocumentErrors with every problem.

    `strict` lets no type of value count for another, though a text may still be a path. `context`
    is what the model's own validators are given.
    """
    try:
        if strict:
            return model.model_validate_json(json.dumps(document.data), strict=True)
        return model.model_validate(document.data, context=context)
    except ValidationError as error:
        raise DocumentErrors(_model_problems(document, model, error)) from error


def check_most(
    document: Document, model: type[ModelT], context: object = None
) -> tuple[ModelT | None, Document, list[Problem]]:
    """Returns the model of as much as can be read, that part of the document, and every problem.

    Whatever has a problem is left out, and the rest is read again. What is then missing is no
    problem of the file. There is no model where too little is left.
    """
    found = list[Problem]()
    for _ in range(MOST_ROUNDS):
        try:
            return model.model_validate(document.data, context=context), document, found
        except ValidationError as error:
            found += _model_problems(document, model, error)
            places = {_place_of(document, detail) for detail in error.errors(include_url=False)}
        if () in places:
            document, places = _with_examples(document, model), places - {()}
            if document.data is None:
                break
        document = document.without(places)
    return None, document, found


def _with_examples(document: Document, model: type[BaseModel]) -> Document:
    """Returns a document with the examples of what it lacks; without data where there are none."""
    if not isinstance(document.data, dict):
        return Document(document.file, document.content)
    lacks = [
        (name, info)
        for name, info in _fields(model)
        if info.is_required() and name not in document.data
    ]
    known = {name: info.examples[0] for name, info in lacks if info.examples}
    made = document.without(())
    made.data = document.data | known if known and len(known) == len(lacks) else None
    made.partial.add(())
    return made


def _place_of(document: Document, detail: Any) -> Place:
    """Returns an error's place, without the names of union members that pydantic puts between."""
    place: Place = ()
    for part in detail["loc"]:
        place = (*place, part) if (*place, part) in document.marks else place
    return place


def _model_problems(
    document: Document, model: type[BaseModel], error: ValidationError
) -> Iterator[Problem]:
    at: dict[Place, list[Any]] = {}
    for detail in error.errors(include_url=False):
        place = _place_of(document, detail)
        if detail["type"] in _OF_PARTS and document.may_lack(place):
            continue  # what was left out may be what it needs
        at.setdefault(place, []).append(detail)
    for place, details in at.items():
        kinds = {detail["type"] for detail in details}
        if kinds <= _SCALARS.keys() and any(other[: len(place)] == place != other for other in at):
            continue  # a union's scalar member refuses a list; its list member says what is wrong
        if len(details) > 1 and kinds <= _PLAIN:  # one value that no member of a union took
            names = list(dict.fromkeys(_SCALARS[kind] for kind in _SCALARS if kind in kinds))
            more = "" if kinds <= _SCALARS.keys() else ", or a list"
            text = f"{_name(place)}: must be {', '.join(names)}{more}"
            yield document.problem(place, text, "wrong-kind")
        else:
            problems = (_model_problem(document, model, place, detail) for detail in details)
            yield from filter(None, problems)


def _model_problem(
    document: Document, model: type[BaseModel], place: Place, error: Any
) -> Problem | None:
    """Returns one error in our words; None for a name that may be in a part that was left out."""
    name = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        text = f"{name} is not known here{_remedy(error['loc'], model)}"
        return document.problem(place, text, code_of(error), at_key=True)
    if error["type"] == "missing":
        if place in document.partial:
            return None
        fields = (it for part in _models_at(error["loc"], model) for it in _fields(part))
        examples = [
            f", such as {name}: {info.examples[0]}"
            for known, info in fields
            if known == name and info.is_required() and info.examples
        ]
        text = f"{name} is missing{''.join(examples[:1])}"
        return document.problem(place, text, code_of(error), at_key=True)
    return document.problem(place, f"{_name(place) or name}: {sentence(error)}", code_of(error))


def _name(place: Place) -> str:
    """Returns what a value is called: its own name, or that of the list around it."""
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _remedy(place: Place, model: type[BaseModel]) -> str:
    """Returns what to write instead of an unknown name, or the group that the name belongs to."""
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
    """Returns the models that may have the last name of the place."""
    models = [model]
    for part in place[:-1]:
        fields = [field for at in models for field in at.model_fields.items()]
        named = [info for name, info in fields if part in (name, info.alias)]
        if named:
            models = [inner for info in named for inner in _models_named_in(info.annotation)]
    return models


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yields the fields of a model with their names in a file."""
    for name, info in model.model_fields.items():
        yield info.alias or name, info


# Pydantic's types of errors, and how they are told to those who write the file.
_WORDS: dict[str, str] = {
    "string_type": "must be a text",
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    "bool_type": "must be true or false",
    **dict.fromkeys(("dict_type", "model_type"), "must be a group of names and values"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    "path_type": "must be a path",
}
# What a plain value can be, in the order in which it is told.
_SCALARS: dict[str, str] = {
    "string_type": "a text",
    "int_type": "a number",
    "float_type": "a number",
    "bool_type": "true or false",
}
_LISTS = frozenset({"list_type", "tuple_type"})
_PLAIN = _SCALARS.keys() | _LISTS
# A text that can be shown as it is, as the item of a list.
_WORD = re.compile(r"[\w.:/-]{1,40}").fullmatch


def unquoted(value: Any) -> str:
    """Returns the remedy for a text in braces that lacks its quotes; "" for another value."""
    if isinstance(value, dict) and value and all(member is None for member in value.values()):
        return f""": put it in quotes, "{{{", ".join(value)}}}\""""
    return ""


def sentence(error: Any) -> str:
    """Returns what one of pydantic's errors says, to stand behind the name."""
    kind, value = error["type"], error["input"]
    if kind == "string_type":
        plain = ": put it in quotes" if isinstance(value, int | float) else ""
        return f"{_WORDS[kind]}{unquoted(value) or plain}"
    if kind in {"int_type", "float_type"} and isinstance(value, str) and is_number(value):
        return f"{_WORDS[kind]}: leave the quotes out"
    if kind in _LISTS and isinstance(value, dict):
        return f"{_WORDS[kind]}: begin each of its items with `- `"
    if kind in _LISTS and isinstance(value, str) and _WORD(value):
        return f"{_WORDS[kind]}: write [{value}]"
    if kind in _WORDS:
        return _WORDS[kind]
    text: str = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return text[:1].lower() + text[1:]


def code_of(error: Any) -> str:
    """Returns the code of the check that one of pydantic's errors fails."""
    kind = error["type"]
    own = getattr(error.get("ctx", {}).get("error"), "code", "wrong-value")
    named = {"extra_forbidden": "unknown-name", "missing": "missing-part"}
    return "wrong-kind" if kind in _WORDS else named.get(kind, own)


def models_in(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Returns the model and all models within its fields."""
    models: list[type[BaseModel]] = []
    pending = [model]
    while pending:
        current = pending.pop()
        if current not in models:
            models.append(current)
            for _, info in _fields(current):
                pending.extend(_models_named_in(info.annotation))
    return models


def _models_named_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [model for part in parts for model in _models_named_in(part)]
