"""Sees that a policy file was cut off, which leaves many fields missing for one reason."""

from adapters.documents.document import Place
from gateway.contract.resources import GOVERNED
from gateway.policy.reading.notes import Notes

_NAMES = [resource.name for resource in GOVERNED]
# What a cut leaves of the last name, and of all that stood behind it.
_LEFT = {"missing-level", "missing-field", "missing-resource", "bad-level", "bad-resource"}


def note_cut(notes: Notes) -> None:
    """One problem at the end of a file that was cut off, for those that follow from it."""
    data = notes.document.data
    if not isinstance(data, dict) or not data:
        return
    *_, last = data
    written = last if isinstance(last, str) and last in _NAMES else ""
    absent = [name for name in _NAMES if name not in data]
    if not written or absent != _NAMES[len(_NAMES) - len(absent) :]:
        return
    behind = {"", *absent}

    def is_moot(place: Place, code: str) -> bool:
        return code in _LEFT and (not place or place[0] in (behind | {written}))

    ends_well = not absent and notes.document.content.endswith(b"\n")
    if not ends_well and _is_torn(notes, written):
        notes.forget(is_moot)
        text = f"the file ends in the middle of {written}: its end seems to be missing"
        notes.say_at(*_end(notes.document.content), "cut-off", text)


def _is_torn(notes: Notes, name: str) -> bool:
    """Whether the last resource lacks its last levels, and nothing below them was misspelt."""
    group = notes.document.data[name]
    if group is None:
        return True
    if not isinstance(group, dict) or not group:
        return False
    levels = ["BASIC", "STANDARD", "FULL"]
    found = [level for level in group if level in levels]
    stops = found != levels or group[found[-1]] is None
    return stops and list(group) == levels[: len(group)]


def _end(content: bytes) -> tuple[int, int]:
    """The line and column behind the last letter of the last line that has any."""
    lines = content.decode("utf-8", "replace").rstrip().splitlines()
    return len(lines), len(lines[-1]) + 1
