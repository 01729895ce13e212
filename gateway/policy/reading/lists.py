"""Reads the lists of one resource: which level opens a field, and which one sees it masked."""

from collections.abc import Mapping
from typing import Any

from adapters.documents.document import Place
from adapters.documents.problems import did_you_mean, nearest
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.policy.masks import KINDS, Mask, fitting, read_mask
from gateway.policy.reading.notes import Notes
from gateway.policy.reading.slips import in_parentheses, masks_of, of_field, of_list, of_mask
from gateway.policy.rules import Sights, opening

NEVER = "never"
_LISTS: Mapping[str, AccessLevel | None] = {level.value: level for level in LEVELS} | {NEVER: None}


class Lists:
    """What the file says of one resource's fields, as far as it was read."""

    def __init__(self, notes: Notes, resource: Resource) -> None:
        self.notes = notes
        self.resource = resource
        self.opens: dict[str, tuple[AccessLevel | None, Place]] = {}
        self.masks: dict[str, tuple[AccessLevel, Mask, Place]] = {}
        # Paths that a misspelt one was probably meant to be: naming them missing too says it twice.
        self.meant: set[str] = set()
        # What could not be read, or stands a second time, may hold any of the fields.
        self.is_whole = (resource.name,) not in notes.document.partial

    def read(self, place: Place, listed: Any) -> None:
        """One list: what a level adds, or what no key sees; `place` ends with its name."""
        if place in self.notes.document.partial:
            self.is_whole = False
        if not isinstance(listed, list):
            self.is_whole = False
            slip = of_list(self.resource, str(place[-1]), listed)
            self.notes.say(place, slip.code, slip.text, at_key=True)
            return
        level = _LISTS.get(str(place[-1]))
        for index, item in enumerate(listed):
            if isinstance(item, dict):
                for path, mask in item.items():
                    self.mask((*place, index, path), path, mask, level)
            else:
                self.path((*place, index), item, level)

    def path(self, place: Place, path: Any, level: AccessLevel | None) -> None:
        name, known = self.resource.name, self.resource.paths
        if isinstance(path, list):
            self.is_whole = False
            text = "a list stands inside a list: one pair of brackets, or one dash, is enough"
            self.notes.say(place, "list-in-list", text)
        elif not isinstance(path, str):
            text = f"a field of {name} must be named by text, such as {known[0]}"
            self.notes.say(place, "bad-field", text)
        elif path not in known:
            self.unknown(place, path)
        elif path in self.opens:
            line = self.notes.line(self.opens[path][1])
            text = f"{name}.{path} stands already in line {line}; keep one of the two"
            self.notes.say(place, "doubled-field", text)
        else:
            self.opens[path] = level, place

    def unknown(self, place: Place, path: str, *, at_key: bool = False) -> None:
        name, known = self.resource.name, self.resource.paths
        members = [each for each in known if each.startswith(f"{path.removesuffix('[]')}[].")]
        if members and path:
            named = ", ".join(f'"{each}"' for each in members)
            text = f"{name}.{path} is a list of objects; name its members: {named}"
            self.meant.update(members)
            self.notes.say(place, "list-of-objects", text, at_key=at_key)
            return
        slip = of_field(self.resource, path)
        if slip is not None:
            self.meant.update(slip.meant)
            self.notes.say(place, slip.code, slip.text, at_key=at_key)
            return
        hint = did_you_mean(path, known)
        self.meant.add(nearest(path, known))
        self.notes.say(place, "unknown-field", f"{name} has no field {path!r}{hint}", at_key=at_key)

    def mask(self, place: Place, path: str, written: Any, level: AccessLevel | None) -> None:
        """A field under a mask."""
        name = self.resource.name
        if path not in self.resource.paths:
            slip = in_parentheses(self.resource, path, written)
            if slip is None:
                self.unknown(place, path, at_key=True)
            else:
                self.meant.update(slip.meant)
                self.notes.say(place, slip.code, slip.text, at_key=True)
        elif level is None:
            text = f"{name}.{path} under {NEVER} is hidden altogether; take the mask out"
            self.notes.say(place, "mask-under-never", text)
        elif path in self.masks:
            line = self.notes.line(self.masks[path][2])
            text = f"{name}.{path} is masked already in line {line}; keep one of the two"
            self.notes.say(place, "doubled-mask", text, at_key=True)
        else:
            self.fitting_mask(place, path, written, level)

    def fitting_mask(self, place: Place, path: str, written: Any, level: AccessLevel) -> None:
        field = self.resource.at(path)
        possible, fits = fitting(field), masks_of(self.resource, path)
        if not possible:
            text = f"{self.resource.name}.{path} cannot be masked: show it whole, or not at all"
            self.notes.say(place, "unfit-mask", text)
            self.meant.add(path)
            return
        mask = read_mask(written)
        if isinstance(mask, Mask) and mask.kind in possible:
            self.masks[path] = level, mask, place
            return
        self.meant.add(path)
        if isinstance(mask, Mask):
            text = f"{mask} does not fit {field.format.name}: {fits}"
            self.notes.say(place, "unfit-mask", text)
        elif isinstance(mask, str):
            self.notes.say(place, "bad-mask", mask)
        elif (written_so := of_mask(written)) is not None:
            text = f"a mask is written in one word: {path}: {written_so}"
            self.notes.say(place, "mask-form", text)
        elif isinstance(written, str):
            hint = did_you_mean(written, KINDS)
            self.notes.say(place, "unknown-mask", f"{written} is no mask{hint}: {fits}")
        else:
            text = f"behind {path} stands no mask: {fits}"
            self.notes.say(place, "unknown-mask", text, at_key=True)

    def sights(self) -> dict[str, Sights]:
        """What each level sees of each field that was named; says which ones are missing."""
        for path in self.resource.paths:
            if path not in self.opens and path not in self.meant and self.is_whole:
                self.missing(path)
        for path in self.masks:
            self.check_lower(path)
        return {path: self.of(path) for path in self.resource.paths if path in self.opens}

    def of(self, path: str) -> Sights:
        first = self.opens[path][0]
        if path not in self.masks:
            return opening(first)
        level, mask, _ = self.masks[path]
        return opening(first, level, mask)

    def missing(self, path: str) -> None:
        name = self.resource.name
        if path in self.masks:
            text = (
                f"{name}.{path} stands under a mask only; add it to the first level that may see"
                f" it whole, or to {NEVER}"
            )
            self.notes.say(self.masks[path][2], "missing-field", text, at_key=True)
            return
        text = (
            f"{name}.{path} is missing; add it to the first level that may see it"
            f" (BASIC, STANDARD or FULL), or to {NEVER}"
        )
        self.notes.say((name,), "missing-field", text, at_key=True)

    def check_lower(self, path: str) -> None:
        """A mask stands at a lower level than the whole field."""
        if path not in self.opens:
            return
        first, opened = self.opens[path]
        level, _, place = self.masks[path]
        if first is not None and LEVELS.index(level) >= LEVELS.index(first):
            line = self.notes.line(opened)
            text = (
                f"{self.resource.name}.{path} is whole from {first} on (line {line}), so that no"
                f" mask of {level} is ever seen; a mask stands at a lower level"
            )
            self.notes.say(place, "mask-not-lower", text, at_key=True)
