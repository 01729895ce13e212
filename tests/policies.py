"""The policy of the tests that are about files, reloads and processes, and changes to its text.

Only tests of the shipped policy read the shipped file. A field that the contract gains stands under
`never` in every text of this module: no key sees it, and these tests notice nothing of it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from gateway.contract.access import LEVELS
from gateway.contract.resources import GOVERNED
from tests.world import record_of

_WRITTEN = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
_LISTS = yaml.safe_load(_WRITTEN)
# The fields of each resource that the contract has and the file does not name.
NEW = {
    resource.name: [
        path
        for path in resource.paths
        if not any(path in listed for listed in _LISTS[resource.name].values())
    ]
    for resource in GOVERNED
}
_a_list = re.compile(r"^  (\w+): \[(.*)\]$", re.MULTILINE)


def never(resource: str, *paths: str) -> str:
    """The list of the fields that no level sees: these, and what is new in the contract."""
    return f"never: [{', '.join(map(_item, (*paths, *NEW[resource])))}]"


def _item(path: str) -> str:
    return f'"{path}"' if "[]" in path else path


def _bounds(text: str, resource: str) -> tuple[int, int]:
    """Where the part of a resource begins, and where the blank line or the end behind it."""
    begin = text.index(f"\n{resource}:\n") + 1
    end = text.find("\n\n", begin)
    return begin, len(text) if end < 0 else end + 1


def _whole(text: str) -> str:
    for resource in NEW:
        begin, end = _bounds(text, resource)
        text = text[:begin] + text[begin:end].replace("never: []", never(resource)) + text[end:]
    return text


TEXT = _whole(_WRITTEN)


def part(resource: str, *lines: str, text: str = TEXT) -> str:
    """The text with these lines for a resource; a list `never` is added where there is none."""
    begin, end = _bounds(text, resource)
    hides = any(each.startswith("never:") for each in lines)
    every = lines if hides else (*lines, never(resource))
    return text[:begin] + f"{resource}:\n" + "".join(f"  {each}\n" for each in every) + text[end:]


def moved(path: str, to: str, text: str = TEXT) -> str:
    """The text with a field, such as `clients.phone`, at the end of another list of its resource.

    ValueError where it stands in no list that is written in one line.
    """
    resource, _, name = path.partition(".")
    begin, end = _bounds(text, resource)
    item, lists = _item(name), dict(_lists(text[begin:end]))
    for level, items in lists.items():
        if item in items:
            left = _with(text[begin:end], level, [each for each in items if each != item])
            return text[:begin] + _with(left, to, [*lists[to], item]) + text[end:]
    raise ValueError(path)


def cases(text: str) -> str:
    """A case for each level: who asks for a client sees just what this policy shows whole."""
    client = next(each for each in GOVERNED if each.name == "clients")
    lines, seen = ["version: 1", "cases:"], []
    for level in LEVELS:
        seen += [each for each in yaml.safe_load(text)["clients"][level] if isinstance(each, str)]
        lines += [
            f"- name: {level} sees a client",
            f"  key: {{level: {level}}}",
            "  operation: get_client",
            f"  record: {json.dumps(record_of(client))}",
            f"  sees: [{', '.join(seen)}]",
        ]
    return "\n".join(lines) + "\n"


def _lists(part: str) -> Iterator[tuple[str, list[str]]]:
    for level, items in _a_list.findall(part):
        yield level, items.split(", ") if items else []


def _with(part: str, level: str, items: list[str]) -> str:
    line = f"  {level}: [{', '.join(items)}]"
    return re.sub(rf"^  {level}: \[.*\]$", lambda _: line, part, count=1, flags=re.MULTILINE)
