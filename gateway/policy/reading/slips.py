"""What people write where a policy wants a field, a mask or a list, and what they meant by it."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.contract.fields import Resource
from gateway.policy.masks import KINDS, Mask, fitting, read_mask
from gateway.policy.rows import path_in_list

_QUOTES = str.maketrans("", "", "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4`")
_parts = re.compile(r"[\s;,|/+&]+").split
_masked = re.compile(r"([\w.\[\]]+?)\s*[\s:=(]\s*(.+)").fullmatch
_mask = re.compile(r"([A-Za-z]+)\W*([0-9]{0,7})\W*").fullmatch
_called = re.compile(r"([A-Za-z]+)\((.+)").fullmatch
_rest_of_mask = re.compile(r"[0-9]*\)+").fullmatch
_JOINING = {"", "and", "or", "und", "oder", "et", "ou"}
_NOTHING = {"no", "none", "nothing", "nobody", "empty", "-", "--", "n/a", "false"}


@dataclass(frozen=True, slots=True)
class Slip:
    """A kind of problem, what to say of it, and the fields that were probably meant."""

    code: str
    text: str
    meant: tuple[str, ...] = ()


def of_field(resource: Resource, written: str) -> Slip | None:
    """Why a text names no field, where that can be told."""
    return (
        _only(resource, written)
        or _odd_letters(resource, written)
        or _prefixed(resource, written)
        or _several(resource, written)
        or _with_mask(resource, written)
    )


def _only(resource: Resource, written: str) -> Slip | None:
    if written != "only":
        return None
    text = f"only stands in a line of its own under {resource.name}: only: {{...}}"
    return Slip("only-in-list", text)


def _odd_letters(resource: Resource, written: str) -> Slip | None:
    plain = written.translate(_QUOTES).strip()
    if plain != written.strip() and plain in resource.paths:
        text = f"quotes are \" or ', not those of a word processor: write {path_in_list(plain)}"
        return Slip("odd-quotes", text, (plain,))
    if plain != written and plain in resource.paths:
        text = f"a blank that is not the keyboard's own stands beside {plain}; write it anew"
        return Slip("hidden-sign", text, (plain,))
    seen = "".join(each for each in written if unicodedata.category(each) != "Cf")
    if seen != written:
        text = f"a sign that no editor shows stands in {seen}; write the word anew"
        return Slip("hidden-sign", text, (seen,))
    return None


def _prefixed(resource: Resource, written: str) -> Slip | None:
    before, dot, path = written.partition(".")
    owners = {resource.name, resource.title, resource.title.lower()}
    if not dot or before not in owners or path not in resource.paths:
        return None
    text = f"{resource.name} stands above already: write {path_in_list(path)} alone"
    return Slip("prefixed-field", text, (path,))


def _several(resource: Resource, written: str) -> Slip | None:
    parts = [each for each in _parts(written) if each not in _JOINING]
    if len(parts) < 2 or not set(parts) <= set(resource.paths):
        return None
    text = f"a comma stands between two fields: write {', '.join(map(path_in_list, parts))}"
    return Slip("missing-comma", text, tuple(parts))


def _with_mask(resource: Resource, written: str) -> Slip | None:
    """`phone last(2)`, `phone:last(2)`, `last(phone, 2)`, or `last(2)` with no field at all."""
    if _rest_of_mask(written):
        text = "a comma cuts a mask in two: it takes one whole number, such as {phone: last(2)}"
        return Slip("mask-form", text)
    if isinstance(read_mask(written), Mask):
        text = f"a mask stands behind its field: write {{phone: {written}}}"
        return Slip("mask-form", text)
    if (called := _called(written)) and called[1] in KINDS and called[2] in resource.paths:
        shown = f"{{{path_in_list(called[2])}: {KINDS[called[1]].example}}}"
        return Slip("mask-form", f"a field under a mask is written {shown}", (called[2],))
    found = _masked(written)
    if found is None or found[1] not in resource.paths:
        return None
    mask = of_mask(found[2].rstrip(")") if "(" not in found[2] else found[2])
    if mask is None:
        return None
    text = f"a field under a mask is written {{{path_in_list(found[1])}: {mask}}}"
    return Slip("mask-form", text, (found[1],))


def of_mask(written: Any) -> str | None:
    """The mask that is meant by `last (2)`, `Last(2)`, `{last: 2}`, `[last, 2]`; None for none."""
    if isinstance(written, Mapping) and len(written) == 1:
        [(name, argument)] = written.items()
        return of_mask(f"{name} {'' if argument is None else argument}")
    if isinstance(written, list) and len(written) == 2:
        return of_mask(f"{written[0]} {written[1]}")
    found = _mask(written) if isinstance(written, str) else None
    kind = KINDS.get(found[1].lower()) if found else None
    if found is None or kind is None:
        return None
    if kind.largest is None:
        return None if found[2] else kind.name
    mask = f"{kind.name}({int(found[2])})" if found[2] else kind.example
    return mask if isinstance(read_mask(mask), Mask) else kind.example


def in_parentheses(resource: Resource, path: str, written: Any) -> Slip | None:
    """`(phone: last(2))` for braces."""
    mask = of_mask(written)
    if path.lstrip("(") not in resource.paths or mask is None:
        return None
    path = path.lstrip("(")
    return Slip(
        "mask-form", f"a field under a mask is written {{{path_in_list(path)}: {mask}}}", (path,)
    )


def of_list(resource: Resource, name: str, written: Any) -> Slip:
    """What stands where the list of a level should."""
    if written is None or str(written).lower() in _NOTHING:
        text = f"{name} must be a list of fields; write [] for none"
        return Slip("bad-level", text)
    if isinstance(written, Mapping):
        known = [each for each in written if each in resource.paths]
        text = f"{name} must be a list of fields, without colons{such_as(known)}"
        return Slip("group-for-list", text, tuple(known))
    if isinstance(written, str) and written.startswith("only"):
        text = f"only stands in a line of its own under {resource.name}: only: {{...}}"
        return Slip("only-in-list", text)
    known = [each.strip("[](){}-") for each in _parts(str(written))]
    known = [each for each in known if each in resource.paths]
    if isinstance(written, str) and re.match(r"-\w", written):
        return Slip("dash", f"a dash needs a blank behind it: write - {written[1:].split()[0]}")
    if written in resource.paths:
        return Slip(
            "bad-level", f"{name} must be a list of fields: write [{path_in_list(written)}]"
        )
    text = f"{name} must be a list of fields{such_as(known)}"
    return Slip("bad-level", text, tuple(known))


def such_as(paths: list[str]) -> str:
    """The list that would have been right, or one like it."""
    shown = f"[{', '.join(map(path_in_list, paths))}]"
    return f": write {shown}" if len(paths) > 1 else ", such as [id, name]"


def masks_of(resource: Resource, path: str) -> str:
    """By what a field can be masked."""
    examples = ", ".join(kind.example for kind in fitting(resource.at(path)))
    return f"{resource.name}.{path} can be masked by {examples}"
