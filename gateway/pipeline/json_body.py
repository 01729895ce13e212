"""The JSON object of a request's body, in which each member may stand once."""

from collections.abc import Collection
from json import JSONDecoder
from typing import Any

import orjson

from gateway.contract.errors import InvalidField


def read_object(
    body: bytes, problems: list[InvalidField]
) -> tuple[dict[str, Any], Collection[str]] | None:
    """The members, and the names of those that stand more than once, in inner objects too.

    None for what is no JSON object; the problem then stands among the others.
    """
    try:
        data = orjson.loads(body)
        if isinstance(data, dict):
            return data, repeated_members(body.decode())
        problem = "must be a JSON object"
    except orjson.JSONDecodeError:
        problem = "is not JSON"
    except RecursionError:
        problem = "is nested too deeply"
    problems.append(InvalidField("body", problem))
    return None


def repeated_members(text: str) -> Collection[str]:
    """The names that stand more than once in one object of a JSON text.

    orjson takes the last of them without a word. RecursionError where objects are nested about a
    thousand levels deep.
    """
    repeated: dict[str, None] = {}

    def note(members: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in members:
            if name in seen:
                repeated[name] = None
            seen.add(name)

    # a number may have more digits than Python makes a number of
    JSONDecoder(object_pairs_hook=note, parse_int=len, parse_float=len).decode(text)
    return repeated.keys()
