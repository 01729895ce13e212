"""Reads the lists of one resource: which level opens a field, which one sees it under a mask.

What people write where a field, a mask or a list should stand, and what they meant by it, is told
by the functions that return a Slip.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.documents.document import Place, ProblemList
from adapters.documents.faults import ODD_QUOTES
from adapters.documents.problems import did_you_mean, nearest
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.policy.masks import KINDS, Mask, fitting, read_mask
from gateway.policy.rows import path_in_list
from gateway.policy.rules import Sights, opening

NEVER = "never"
_LISTS: Mapping[str, AccessLevel | None] = {level.value: level for level in LEVELS} | {NEVER: None}


@dataclass(frozen=True, slots=True)
class Slip:
    """The code of a check, what to say of it, and the fields that were probably meant."""

    code: str
    text: str
    meant: tuple[str, ...] = ()


class Lists:
    """What the file says of one resource's fields, as far as it was read."""

    def __init__(self, noted: ProblemList, resource: Resource) -> None:
        self.noted = noted
        self.resource = resource
        self.opens: dict[str, tuple[AccessLevel | None, Place]] = {}
        self.masks: dict[str, tuple[AccessLevel, Mask, Place]] = {}
        # Paths that a misspelt one was probably meant to be: naming them missing too says it twice.
        self.meant: set[str] = set()
        # What could not be read, or stands a second time, may hold any of the fields.
        self.is_whole = (resource.name,) not in noted.document.partial

    def read(self, place: Place, listed: Any) -> None:
        """One list: what a level adds, or what no key sees; `place` ends with its name."""
        name = str(place[-1])
        if place in self.noted.document.partial:
            self.is_whole = False
        if not isinstance(listed, list):
            self.is_whole = False
            slip = _of_list(self.resource, name, listed)
            self.noted.say(place, slip.code, slip.text, at_key=True)
            return
        level = _LISTS.get(name)
        for index, item in enumerate(listed):
            if isinstance(item, dict):
                for path, mask in item.items():
                    self._mask((*place, index, path), path, mask, level)
            else:
                self._path((*place, index), item, level)

    def _path(self, place: Place, path: Any, level: AccessLevel | None) -> None:
        name, known = self.resource.name, self.resource.paths
        if isinstance(path, list):
            self.is_whole = False
            text = "a list stands inside a list: one pair of brackets, or one dash, is enough"
            self.noted.say(place, "list-in-list", text)
        elif not isinstance(path, str):
            text = f"a field of {name} must be named by text, such as {known[0]}"
            self.noted.say(place, "bad-field", text)
        elif path not in known:
            self._slip(place, _of_path(self.resource, path), at_key=False)
        elif path in self.opens:
            line = self.noted.line(self.opens[path][1])
            text = f"{name}.{path} stands already in line {line}; keep one of the two"
            self.noted.say(place, "doubled-field", text)
        else:
            self.opens[path] = level, place

    def _slip(self, place: Place, slip: Slip, *, at_key: bool = True) -> None:
        self.meant.update(slip.meant)
        self.noted.say(place, slip.code, slip.text, at_key=at_key)

    def _mask(self, place: Place, path: str, written: Any, level: AccessLevel | None) -> None:
        """A field under a mask."""
        name = f"{self.resource.name}.{path}"
        if path not in self.resource.paths:
            mask, inner = _meant_mask(written), path.lstrip("(")  # `(phone: last(2))` for braces
            if mask and inner in self.resource.paths:
                self._slip(place, _mask_form(inner, mask))
            else:
                self._slip(place, _of_path(self.resource, path))
        elif level is None:
            text = f"{name} under {NEVER} is hidden altogether; take the mask out"
            self.noted.say(place, "mask-under-never", text)
        elif path in self.masks:
            line = self.noted.line(self.masks[path][2])
            text = f"{name} is masked already in line {line}; keep one of the two"
            self.noted.say(place, "doubled-mask", text, at_key=True)
        else:
            read = read_mask(written)
            if isinstance(read, Mask) and read.kind in fitting(self.resource.at(path)):
                self.masks[path] = level, read, place
            else:
                slip = _of_misfit(self.resource, path, written)
                at_key = slip.code == "unknown-mask" and not isinstance(written, str)
                self._slip(place, slip, at_key=at_key)

    def sights(self) -> dict[str, Sights]:
        """What each level sees of each field that was named; says which ones are missing."""
        for path in self.resource.paths:
            if path not in self.opens and path not in self.meant and self.is_whole:
                self._missing(path)
        for path in self.masks.keys() & self.opens.keys():
            self._check_lower(path)
        return {path: self._sights(path) for path in self.resource.paths if path in self.opens}

    def _sights(self, path: str) -> Sights:
        first, _ = self.opens[path]
        if path not in self.masks:
            return opening(first)
        level, mask, _ = self.masks[path]
        return opening(first, level, mask)

    def _missing(self, path: str) -> None:
        place: Place = (self.resource.name,)
        remedy = "missing; add it to the first level that may see it (BASIC, STANDARD or FULL), or"
        if path in self.masks:
            place = self.masks[path][2]
            remedy = "under a mask only; add it to the first level that may see it whole, or"
        verb = "stands" if path in self.masks else "is"
        text = f"{self.resource.name}.{path} {verb} {remedy} to {NEVER}"
        self.noted.say(place, "missing-field", text, at_key=True)

    def _check_lower(self, path: str) -> None:
        """A mask stands at a lower level than the whole field."""
        (first, opened), (level, _, place) = self.opens[path], self.masks[path]
        if first is not None and LEVELS.index(level) >= LEVELS.index(first):
            text = (
                f"{self.resource.name}.{path} is whole from {first} on (line"
                f" {self.noted.line(opened)}), so that no mask of {level} is ever seen; a mask"
                " stands at a lower level"
            )
            self.noted.say(place, "mask-not-lower", text, at_key=True)


_WITHOUT_QUOTES = str.maketrans("", "", ODD_QUOTES)
_JOINING = {"", "and", "or", "und", "oder", "et", "ou"}
_NOTHING = {"no", "none", "nothing", "nobody", "empty", "-", "--", "n/a", "false"}
_parts = re.compile(r"[\s;,|/+&]+").split
_masked = re.compile(r"([\w.\[\]]+?)\s*[\s:=(]\s*(.+)").fullmatch
_mask = re.compile(r"([A-Za-z]+)\W*([0-9]{0,7})\W*").fullmatch
_called = re.compile(r"([A-Za-z]+)\((.+)").fullmatch
_rest_of_mask = re.compile(r"[0-9]*\)+").fullmatch


def _of_path(resource: Resource, path: str) -> Slip:
    """Why a text names no field of a resource."""
    known = resource.paths
    if slip := list_of_objects(resource, path) or of_field(resource, path):
        return slip
    text = f"{resource.name} has no field {path!r}{did_you_mean(path, known)}"
    return Slip("unknown-field", text, (nearest(path, known),))


def list_of_objects(resource: Resource, path: str) -> Slip | None:
    """Says to name the members, where a text names a list of objects as a whole."""
    inside = f"{path.removesuffix('[]')}[]."
    members = tuple(known for known in resource.paths if path and known.startswith(inside))
    if not members:
        return None
    named = ", ".join(f'"{member}"' for member in members)
    text = f"{resource.name}.{path} is a list of objects; name its members: {named}"
    return Slip("list-of-objects", text, members)


def of_field(resource: Resource, written: str) -> Slip | None:
    """Why a text names no field, where its letters or its form tell."""
    if written == "only":
        return _only_in_list(resource)
    return (
        _odd_letters(resource, written)
        or _prefixed(resource, written)
        or _several(resource, written)
        or _with_mask(resource, written)
    )


def _only_in_list(resource: Resource) -> Slip:
    text = f"only stands in a line of its own under {resource.name}: only: {{...}}"
    return Slip("only-in-list", text)


def _odd_letters(resource: Resource, written: str) -> Slip | None:
    plain = written.translate(_WITHOUT_QUOTES).strip()
    if plain != written.strip() and plain in resource.paths:
        text = f"quotes are \" or ', not those of a word processor: write {path_in_list(plain)}"
        return Slip("odd-quotes", text, (plain,))
    if plain != written and plain in resource.paths:
        text = f"a blank that is not the keyboard's own stands beside {plain}; write it anew"
        return Slip("hidden-sign", text, (plain,))
    seen = "".join(letter for letter in written if unicodedata.category(letter) != "Cf")
    if seen == written:
        return None
    text = f"a sign that no editor shows stands in {seen}; write the word anew"
    return Slip("hidden-sign", text, (seen,))


def _prefixed(resource: Resource, written: str) -> Slip | None:
    before, _, path = written.partition(".")
    if before not in {resource.name, resource.title, resource.title.lower()}:
        return None
    if path not in resource.paths:
        return None
    text = f"{resource.name} stands above already: write {path_in_list(path)} alone"
    return Slip("prefixed-field", text, (path,))


def _several(resource: Resource, written: str) -> Slip | None:
    parts = tuple(part for part in _parts(written) if part not in _JOINING)
    if len(parts) < 2 or not set(parts) <= set(resource.paths):
        return None
    text = f"a comma stands between two fields: write {', '.join(map(path_in_list, parts))}"
    return Slip("missing-comma", text, parts)


def _with_mask(resource: Resource, written: str) -> Slip | None:
    """`phone last(2)`, `phone:last(2)`, `last(phone, 2)`, or `last(2)` with no field at all."""
    if _rest_of_mask(written):
        text = "a comma cuts a mask in two: it takes one whole number, such as {phone: last(2)}"
        return Slip("mask-form", text)
    if isinstance(read_mask(written), Mask):
        return Slip("mask-form", f"a mask stands behind its field: write {{phone: {written}}}")
    if (called := _called(written)) and called[1] in KINDS and called[2] in resource.paths:
        return _mask_form(called[2], KINDS[called[1]].example)
    found = _masked(written)
    if found is None or found[1] not in resource.paths:
        return None
    mask = _meant_mask(found[2].rstrip(")") if "(" not in found[2] else found[2])
    return _mask_form(found[1], mask) if mask else None


def _mask_form(path: str, mask: str) -> Slip:
    text = f"a field under a mask is written {{{path_in_list(path)}: {mask}}}"
    return Slip("mask-form", text, (path,))


def _meant_mask(written: Any) -> str | None:
    """The mask that is meant by `last (2)`, `Last(2)`, `{last: 2}`, `[last, 2]`; None for none."""
    if isinstance(written, Mapping) and len(written) == 1:
        written = ["" if part is None else part for part in next(iter(written.items()))]
    if isinstance(written, list) and len(written) == 2:
        written = f"{written[0]} {written[1]}"
    found = _mask(written) if isinstance(written, str) else None
    kind = KINDS.get(found[1].lower()) if found else None
    if found is None or kind is None:
        return None
    if kind.largest is None:
        return None if found[2] else kind.name
    mask = f"{kind.name}({int(found[2] or 0)})"
    return mask if isinstance(read_mask(mask), Mask) else kind.example


def _of_misfit(resource: Resource, path: str, written: Any) -> Slip:
    """Why what stands behind a field is no mask of it."""
    field, mask, meant = resource.at(path), read_mask(written), (path,)
    examples = ", ".join(kind.example for kind in fitting(field))
    fits = f"{resource.name}.{path} can be masked by {examples}"
    if not examples:
        text = f"{resource.name}.{path} cannot be masked: show it whole, or not at all"
        return Slip("unfit-mask", text, meant)
    if isinstance(mask, Mask):
        return Slip("unfit-mask", f"{mask} does not fit {field.format.name}: {fits}", meant)
    if isinstance(mask, str):
        return Slip("bad-mask", mask, meant)
    if written_so := _meant_mask(written):
        text = f"a mask is written in one word: {path}: {written_so}"
        return Slip("mask-form", text, meant)
    text = f"behind {path} stands no mask: {fits}"
    if isinstance(written, str):
        text = f"{written} is no mask{did_you_mean(written, KINDS)}: {fits}"
    return Slip("unknown-mask", text, meant)


def _of_list(resource: Resource, name: str, written: Any) -> Slip:
    """What stands where the list of a level should."""
    must = f"{name} must be a list of fields"
    if written is None or str(written).lower() in _NOTHING:
        return Slip("bad-level", f"{must}; write [] for none")
    if isinstance(written, Mapping):
        known = [path for path in written if path in resource.paths]
        return Slip("group-for-list", f"{must}, without colons{_such_as(known)}")
    if str(written).startswith("only"):
        return _only_in_list(resource)
    if re.match(r"-\w", str(written)) and isinstance(written, str):
        return Slip("dash", f"a dash needs a blank behind it: write - {written[1:].split()[0]}")
    if written in resource.paths:
        return Slip("bad-level", f"{must}: write [{path_in_list(written)}]")
    known = [part.strip("[](){}-") for part in _parts(str(written))]
    return Slip(
        "bad-level", f"{must}{_such_as([path for path in known if path in resource.paths])}"
    )


def _such_as(paths: list[str]) -> str:
    """The list that would have been right, or one like it."""
    shown = f"[{', '.join(map(path_in_list, paths))}]"
    return f": write {shown}" if len(paths) > 1 else ", such as [id, name]"
