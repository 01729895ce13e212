"""Whether the parts of a state belong together, and none is missing that there has been."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from gateway.audit.chains import PLACE
from gateway.audit.verification import counted
from gateway.settings import StartRefused
from gateway.state.parts import SEALING, Part, Parts

RESTORE = "restore a backup (`clinic-gateway state restore DIR`)"
PUT_BACK = "put the file back from a backup (`clinic-gateway state restore DIR`)"


def check_parts(parts: Parts) -> None:
    """StartRefused where they are of several states, or one of them is gone."""
    for said in _refusals(parts):
        raise StartRefused(said)


def _refusals(parts: Parts) -> Iterator[str]:
    yield from _mixed([each for each in parts if each.identity])
    if not parts.store.is_there:
        yield from _without_store(parts)
        return
    if _is_lost(parts.secret) and parts.has_ids:
        yield (
            f"{parts.secret} is gone: with a new one every public id would change; keep the store,"
            f" and {PUT_BACK} (it has it as sealing.secret)"
        )
    if _is_lost(parts.audit) and (parts.has_chains or _is_kept(parts.key) or _days(parts)):
        yield (
            f"{parts.audit} is gone, though this state has an audit: {_moved(parts)}; or put its"
            f" folder back, or keep the store, and {PUT_BACK} (it has it as audit)"
        )
    elif not parts.is_named:
        yield (
            f"{parts.audit} holds no name of the folder: move it away, and {PUT_BACK} (it has it as"
            " audit)"
        )
    elif parts.lost_lines:
        yield (
            f"all day files of the audit in {_folder(parts)} are gone, of which the store knows"
            f" {counted(parts.lost_lines, 'line')}: put them back, or keep the store, and restore"
            " them from a backup (`clinic-gateway state restore DIR`; it has them in audit)"
        )
    if _is_lost(parts.key) and parts.in_use:
        yield (
            f"{parts.key} is gone: put it back from a backup (`clinic-gateway state restore DIR`"
            " does, and keeps the store);"
            " `clinic-gateway audit rotate-key` makes another one, with which what was written"
            " before cannot be verified any more"
        )


def _mixed(parts: list[Part]) -> Iterator[str]:
    """Parts of several states; those of each are named together."""

    def state(part: Part) -> str:
        return part.identity or ""

    states = [(of, list(own)) for of, own in groupby(sorted(parts, key=state), key=state)]
    if len(states) > 1:
        told = "; ".join(f"{' and '.join(map(str, own))} of state {of}" for of, own in states)
        yield (
            f"these are parts of different states: {told}; put back what belongs to the others, or"
            f" move all of them away and {RESTORE}"
        )


def _without_store(parts: Parts) -> Iterator[str]:
    left: list[Part | Path] = [*(each for each in parts.files if _belongs(each)), *parts.traces]
    if left:
        away = dict.fromkeys(_whole(parts, each) for each in left)
        yield (
            f"{parts.store} is gone: {left[0]} shows that this state had one; put it back, or"
            f" {RESTORE}; to begin anew, move {' and '.join(map(str, away))} away: all keys,"
            " bookings and public ids are then lost for good"
        )


def _belongs(part: Part) -> bool:
    """Whether it is of a state; a secret that does not say so may be the operator's for a new one.

    So may a key whose place the operator has named.
    """
    return part.identity is not None or (_is_kept(part) and part.name != SEALING)


def _whole(parts: Parts, left: Part | Path) -> Path:
    """The file, or the audit's folder where it lies in there."""
    path = left if isinstance(left, Path) else Path(left.place)
    audit = _folder(parts)
    return audit if path.parent == audit else path


def _folder(parts: Parts) -> Path:
    """The audit's."""
    return Path(parts.audit.place).parent


def _moved(parts: Parts) -> str:
    """What to do where `audit.folder` was changed, and the folder stayed where it was."""
    if parts.former is not None:
        return (
            f"it is in {parts.former}; name that folder as audit.folder, or stop the gateway and"
            f" move all of it to {_folder(parts)}"
        )
    state = f" with the line `# state {parts.identity}`" if parts.identity else ""
    nodes = (
        "if another node keeps it, say in `nodes` how many there are; " if parts.is_shared else ""
    )
    return (
        f"{nodes}if audit.folder was changed, name its former folder there again, which is the one"
        f" that has a {PLACE}{state}"
    )


def _is_lost(part: Part | None) -> bool:
    """Whether it is not there, and the gateway itself would make it."""
    return part is not None and part.made_here and not part.is_there


def _is_kept(part: Part) -> bool:
    return part.made_here and part.is_there


def _days(parts: Parts) -> bool:
    return any(path.name.endswith(".jsonl") and path.name[:1].isdigit() for path in parts.traces)
