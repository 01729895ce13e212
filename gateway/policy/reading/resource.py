"""Reads what a policy file says of one resource: the lists of fields and the row conditions."""

import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

from adapters.documents.document import Place, ProblemList
from adapters.documents.problems import did_you_mean, nearest
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import NUMBER, Field, Resource
from gateway.policy import rows
from gateway.policy.masks import KINDS, Mask, fitting, read_mask
from gateway.policy.policy import HIDDEN, WHOLE, Sight, Sights
from gateway.policy.values import NoValue, read_value

NEVER = "never"
ONLY = "only"
NOT = "not"
# Word of a bound -> the bound of a ValueTest that it sets, and its edge.
BOUNDS: Mapping[str, tuple[str, int]] = {
    "min": ("low", 0),
    "above": ("low", 1),
    "max": ("high", 0),
    "below": ("high", -1),
}
_WORDS = (NOT, *BOUNDS)
_COMPARISONS = f"{', '.join(_WORDS[:-1])} or {_WORDS[-1]}"
_LEVELS = {level.value: level for level in LEVELS}
_LISTS: Mapping[str, AccessLevel | None] = {**_LEVELS, NEVER: None}
_NOTHING = {"no", "none", "nothing", "nobody", "empty", "-", "--", "n/a", "false"}
_paths_in = re.compile(r"\w[\w.]*(?:\[\][\w.]*)*").findall


class RulesReader:
    """Reads what the file says of one resource. What cannot be read shows nothing.

    `opens` and `masks` are field -> the level that opens or masks it, and its place.
    """

    def __init__(self, noted: ProblemList, resource: Resource) -> None:
        self.noted = noted
        self.resource = resource
        self.opens: dict[str, tuple[AccessLevel | None, Place]] = {}
        self.masks: dict[str, tuple[AccessLevel, Mask, Place]] = {}
        # Level -> field -> sight: the common part of two policies may name a field more than once.
        self._listed = defaultdict[AccessLevel | None, dict[str, Sight]](dict)
        # Paths that were probably misspelt. They are not reported as missing, too.
        self._meant: set[str] = set()
        # Whether all lists could be read: others may name any of the fields.
        self._is_whole = (resource.name,) not in noted.document.partial

    def refuse(self, place: Place, code: str, text: str) -> None:
        """Reports what is wrong with the name at a place."""
        self.noted.say(place, code, text, at_key=True)

    def read(self, place: Place, listed: Any) -> None:
        """Reads one list: what a level adds, or what no key sees. `place` ends with its name."""
        self._is_whole &= isinstance(listed, list) and place not in self.noted.document.partial
        if not isinstance(listed, list):
            fields = [path for path in _paths_in(str(listed)) if path in self.resource.paths]
            remedy = f": write [{', '.join(map(rows.path_in_list, fields))}]"
            remedy = remedy if fields else ", such as [id, name]"
            if listed is None or str(listed).lower() in _NOTHING:
                remedy = "; write [] for none"
            self.refuse(place, "bad-level", f"{place[-1]} must be a list of fields{remedy}")
            return
        level = _LISTS.get(str(place[-1]))
        for index, item in enumerate(listed):
            if isinstance(item, dict):
                for path, mask in item.items():
                    self._mask((*place, index, path), path, mask, level)
            else:
                self._path((*place, index), item, level)

    def _path(self, place: Place, path: Any, level: AccessLevel | None) -> None:
        if not isinstance(path, str):
            self._is_whole &= not isinstance(path, list)
            text = f"a field of {self.resource.name} must be named by text, such as"
            self.noted.say(place, "bad-field", f"{text} {self.resource.paths[0]}")
        elif path not in self.resource.paths:
            self._stranger(place, path)
        else:
            self._listed[level][path] = WHOLE
            if path in self.opens:
                self._doubled(place, path, "stands", self.opens[path][1])
            self.opens.setdefault(path, (level, place))

    def _mask(self, place: Place, path: str, written: Any, level: AccessLevel | None) -> None:
        if path not in self.resource.paths:
            self._stranger(place, path, "" if written is None else f" {written}")
            return
        mask = read_mask(written)
        if not (isinstance(mask, Mask) and mask.kind in fitting(self.resource.at(path))):
            mask = None
        self._listed[level][path] = mask or HIDDEN
        if level is None:
            text = f"{self.resource.name}.{path} under {NEVER} is hidden altogether; take the mask"
            self.noted.say(place, "mask-under-never", f"{text} out")
        elif path in self.masks:
            self._doubled(place, path, "is masked", self.masks[path][2])
        elif mask is not None:
            self.masks[path] = level, mask, place
        else:
            self._meant.add(path)
            code, text = _misfit(self.resource, path, written)
            self.noted.say(place, code, text, at_key=not isinstance(written, str | dict | list))

    def _stranger(self, place: Place, path: str, mask: str = "") -> None:
        code, text, meant = slip_of(self.resource, path, mask)
        self._meant.update(meant)
        self.refuse(place, code, text)

    def _doubled(self, place: Place, path: str, verb: str, first: Place) -> None:
        line = self.noted.document.marks[first][0]
        text = f"{self.resource.name}.{path} {verb} already in line {line}; keep one of the two"
        self.refuse(place, "doubled-field", text)

    def sights(self) -> dict[str, Sights]:
        """Returns what the levels see of each field, from the lists that were read."""
        seen: dict[str, Sight] = dict.fromkeys(self.resource.paths, HIDDEN)
        basic, standard, full = [seen := seen | self._listed[level] for level in LEVELS]
        return {path: (basic[path], standard[path], full[path]) for path in self.resource.paths}

    def compare(self) -> None:
        """Reports the fields that no list names, and the masks that are never seen."""
        place: Place
        every = self.resource.paths if self._is_whole else ()
        for path in set(every) - self.opens.keys() - self._meant:
            place, verb, remedy = (self.resource.name,), "is missing", "(BASIC, STANDARD or FULL)"
            if path in self.masks:
                place, verb, remedy = self.masks[path][2], "stands under a mask only", "whole"
            text = f"{self.resource.name}.{path} {verb}; add it to the first level that may see it"
            self.refuse(place, "missing-field", f"{text} {remedy}, or to {NEVER}")
        for path in self.masks.keys() & self.opens.keys():
            (first, opened), (level, _, place) = self.opens[path], self.masks[path]
            if first is not None and LEVELS.index(level) >= LEVELS.index(first):
                text = (
                    f"{self.resource.name}.{path} is whole from {first} on (line"
                    f" {self.noted.document.marks[opened][0]}), so that no mask of {level} is ever"
                    " seen; a mask stands at a lower level"
                )
                self.refuse(place, "mask-not-lower", text)

    def only(self, data: Any) -> dict[AccessLevel, rows.RowFilter]:
        """Returns the rows of each level with conditions; an unreadable one admits no record."""
        place, before = (self.resource.name, ONLY), len(self.noted.problems)
        if not isinstance(data, dict) or data.keys().isdisjoint(_LEVELS):
            return dict.fromkeys(LEVELS, self._rows(place, data, LEVELS[0]))
        filters: dict[AccessLevel, rows.RowFilter] = {}
        for name, conditions in data.items():
            if name in _LEVELS:
                filters[_LEVELS[name]] = self._rows((*place, name), conditions, _LEVELS[name])
            else:
                text = f"{name} stands beside levels, and is none{did_you_mean(name, _LEVELS)}: put"
                text = f"{text} a condition under those that it is for, or under all"
                self.refuse((*place, name), "bad-only", text)
        for lower, higher in pairwise(LEVELS) if len(self.noted.problems) == before else ():
            if higher in filters and not filters.get(lower, rows.EVERY).within(filters[higher]):
                text = (
                    f"{lower} sees records of {self.resource.name} that {higher} does not: a level"
                    " sees all that the one before it sees"
                )
                self.refuse((*place, higher.value), "narrower-level", text)
        return filters

    def _rows(self, place: Place, data: Any, level: AccessLevel) -> rows.RowFilter:
        """Returns the conditions of a level, each on a field that it sees whole."""
        if not isinstance(data, dict) or not data:
            text = f"{place[-1]} must name fields and their values, such as {{status: [ACTIVE]}}"
            self.refuse(place, "bad-only", text)
            return rows.RowFilter({"id": rows.NOTHING})
        tests, unread = dict[str, rows.ValueTest](), dict[str, rows.ValueTest]()
        for name, condition in data.items():
            here, field = (*place, name), self._field((*place, name), name, level)
            before = len(self.noted.problems)
            if field is None:
                unread["id"] = rows.NOTHING
                continue
            tests[name] = rows.in_closed(field, self._test(here, field, condition))
            if len(self.noted.problems) > before:
                unread[name] = rows.NOTHING
            elif tests[name].is_empty:
                text = f"no value of {name} meets this, so that no record would exist"
                self.refuse(here, "empty-condition", text)
        return rows.RowFilter(tests | unread)

    def _field(self, place: Place, name: str, level: AccessLevel) -> Field | None:
        """Returns the field of that name; None where it can have no condition."""
        resource, (first, _) = self.resource, self.opens.get(name, (LEVELS[0], ()))
        if name not in resource.paths:
            code, text, _ = slip_of(resource, name)
            if near := nearest(name, _LEVELS):
                code, text = "unknown-level", f"{name} is not a level (did you mean {near}?)"
            self.refuse(place, code, text)
        elif "[]" in name or resource.at(name).many:
            text = f"{resource.name}.{name} stands in a list, of which no condition can be"
            self.refuse(place, "condition-on-list", text)
        else:
            if first is None or LEVELS.index(level) < LEVELS.index(first):
                text = (
                    f"{resource.name}.{name} is not whole at {level}: a condition tells what the"
                    f" field says; {f'it opens at {first}' if first else 'no level sees it'}"
                )
                self.refuse(place, "condition-on-hidden", text)
            return resource.at(name)
        return None

    def _test(self, place: Place, field: Field, data: Any) -> rows.ValueTest:
        """Reads a condition: `A`, `[A, B]`, `{not: [...]}`, `{min: 1, below: 9}`."""
        if not isinstance(data, dict):
            return rows.ValueTest(allowed=self._values(place, field, data))
        barred: frozenset[rows.Value] = frozenset()
        bounds: dict[str, rows.Bound] = {}
        if not data:
            self.noted.say(place, "bad-condition", f"{field.name} needs a value, or {_COMPARISONS}")
        for word, given in data.items():
            here = (*place, word)
            if word == NOT:
                barred = self._values(here, field, given)
            elif word in BOUNDS:
                self._bound(here, field, given, bounds)
            else:
                text = f"{word} is no comparison{did_you_mean(word, _WORDS)}; write {_COMPARISONS}"
                self.refuse(here, "bad-condition", text)
        return rows.ValueTest(barred=barred, low=bounds.get("low"), high=bounds.get("high"))

    def _bound(self, place: Place, field: Field, given: Any, bounds: dict[str, rows.Bound]) -> None:
        word = str(place[-1])
        side, edge = BOUNDS[word]
        if not rows.is_ordered(field):
            text = f"{field.name} has no order: write a list of values, or not: and a list"
            self.refuse(place, "unordered-field", text)
        elif side in bounds:
            other = next(it for it in BOUNDS if it != word and BOUNDS[it][0] == side)
            text = f"{word} and {other} bound the same side; keep one of the two"
            self.refuse(place, "bad-condition", text)
        elif (value := self._value(place, field, given, finer=True)) is not None:
            bounds[side] = rows.Bound(value, edge)

    def _values(self, place: Place, field: Field, data: Any) -> frozenset[rows.Value]:
        """Reads one value, or a list of values; leaves out what cannot be read."""
        if data == []:
            text = f"no value of {field.name} is named here: write them, such as [A, B]"
            self.refuse(place, "empty-condition", text)
        listed = {place: data}
        if isinstance(data, list):
            listed = {(*place, at): given for at, given in enumerate(data)}
        read = (self._value(at, field, given) for at, given in listed.items())
        return frozenset(value for value in read if value is not None)

    def _value(
        self, place: Place, field: Field, given: Any, *, finer: bool = False
    ) -> rows.Value | None:
        """Returns a value as it is compared; reports a wrong one. Bounds may be `finer`."""
        text = f"{field.name}: nothing stands here; a record without it never meets a condition"
        try:
            if finer:
                with suppress(ValueError):
                    return rows.comparable(field, given if field.format is NUMBER else str(given))
            if given is not None:
                return rows.comparable(field, read_value(field, given))
        except NoValue as error:
            text = f"{field.name} {error}"
        self.noted.say(place, "bad-value", text)
        return None


def slip_of(resource: Resource, written: str, mask: str = "") -> tuple[str, str, tuple[str, ...]]:
    """Returns why a text names no field: a check's code, its text, and the fields that it meant."""
    name, known = resource.name, resource.paths
    plain = re.sub(r"[^\w.\[\]]", "", written).removeprefix(f"{name}.")
    members = tuple(path for path in known if path.startswith(f"{plain.removesuffix('[]')}[]."))
    if members:
        named = ", ".join(map(rows.path_in_list, members))
        text = f"{name}.{plain} is a list of objects; name its members: {named}"
        return "list-of-objects", text, members
    fields = tuple(path for path in _paths_in(written) if path in known)
    if meant := _mask_in(f"{written}{mask}"):
        field = rows.path_in_list(fields[0]) if fields else "phone"
        text = f"a field under a mask is written {{{field}: {meant}}}"
        return "mask-form", text, fields
    if len(fields) > 1:
        named = ", ".join(map(rows.path_in_list, fields))
        return "missing-comma", f"a comma stands between two fields: write {named}", fields
    near, remedy = nearest(written, known), did_you_mean(written, known)
    if plain in known:  # with its resource, quotes or an invisible character
        near, remedy = plain, f": write {rows.path_in_list(plain)}"
    return "unknown-field", f"{name} has no field {written!r}{remedy}", (near,)


def _mask_in(written: Any) -> str | None:
    """Returns the mask meant by `last (2)`, `Last(2)`, `{last: 2}` or `[last, 2]`, or None."""
    words = re.findall(r"\w+", str(written))
    kind = next((KINDS[word.lower()] for word in words if word.lower() in KINDS), None)
    if kind is None:
        return None
    mask = read_mask(f"{kind.name}({next(filter(str.isdecimal, words), 0)})")
    return str(mask) if isinstance(mask, Mask) else kind.example


def _misfit(resource: Resource, path: str, written: Any) -> tuple[str, str]:
    """Returns the check that fails where a field has no fitting mask, and what to write."""
    field, mask = resource.at(path), read_mask(written)
    examples = ", ".join(kind.example for kind in fitting(field))
    fits = f"{resource.name}.{path} can be masked by {examples}"
    if not examples:
        text = f"{resource.name}.{path} cannot be masked: show it whole, or not at all"
        return "unfit-mask", text
    if isinstance(mask, Mask):
        return "unfit-mask", f"{mask} does not fit {field.format.name}: {fits}"
    if isinstance(mask, str):
        return "bad-mask", mask
    if meant := _mask_in(written):
        return "mask-form", f"a mask is written in one word: {path}: {meant}"
    if isinstance(written, str):
        return "unknown-mask", f"{written} is no mask{did_you_mean(written, KINDS)}: {fits}"
    return "unknown-mask", f"behind {path} stands no mask: {fits}"
