"""Finds the parts of a state, and tells whether all are there and belong to the same state."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.audit import chains
from gateway.audit.chains import PLACE, DayFile, Known, audit_folder, place_of
from gateway.audit.entries import key_file
from gateway.events import counted
from gateway.identity import META, content_of, identity_of
from gateway.observe.lines import ACCESS
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import secret_file
from gateway.settings import Settings, StartRefused
from gateway.store import Store
from gateway.store.base import HEAD

RESTORE = "restore a backup (`clinic-gateway state restore DIR`)"
PUT_BACK = "put the file back from a backup (`clinic-gateway state restore DIR`)"


@dataclass(frozen=True, slots=True)
class StatePart:
    """One part of a state. `made_here`: the gateway itself makes it, and not the operator."""

    name: str
    place: str
    is_there: bool
    identity: str | None = None
    made_here: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.place}"

    @property
    def is_lost(self) -> bool:
        """Whether it is not there, and the gateway itself would make it."""
        return self.made_here and not self.is_there

    @property
    def is_kept(self) -> bool:
        return self.made_here and self.is_there


@dataclass(frozen=True, slots=True, kw_only=True)
class StateParts:
    """All parts of a state. `secret` is None where the settings hold the secret themselves.

    `version` is the store's migration, None where there is no store. `has_ids`: public ids were
    made with the sealing secret. `known` are the audit's chains in the store, `here` those of this
    folder. `days` are the folder's files, None where they cannot be read. `is_shared`: other
    machines may use the store too.
    """

    settings: Settings
    store: StatePart
    secret: StatePart | None
    audit: StatePart
    key: StatePart
    version: str | None
    has_ids: bool
    known: Sequence[Known]
    here: Sequence[Known]
    days: Sequence[DayFile] | None
    is_shared: bool

    def __iter__(self) -> Iterator[StatePart]:
        yield from (self.store, *self.files)

    @property
    def files(self) -> Iterator[StatePart]:
        """The parts that are one file each."""
        yield from (part for part in (self.audit, self.key, self.secret) if part is not None)

    @property
    def identity(self) -> str | None:
        """The identity of the state if its parts agree; None where none of them has one."""
        return next((part.identity for part in self if part.identity), None)


async def checked_parts(settings: Settings, store: Store) -> StateParts:
    """Returns what `find_parts` does; raises StartRefused where parts are gone or do not fit."""
    parts = await find_parts(settings, store)
    for refusal in _refusals(parts):
        raise StartRefused(refusal)
    return parts


async def find_parts(settings: Settings, store: Store) -> StateParts:
    """Returns the parts as they are. Raises StoreError, and StartRefused for an unreadable one."""
    version = await store.version()
    folder, heads = audit_folder(settings), chains.Chains(store)
    # tables of an older version are read once they are migrated
    known = await heads.known() if version == HEAD else []
    place, days = place_of(folder), None
    with suppress(OSError):  # later readers say why they cannot be read
        # after the chains: a process that begins makes its file before its chain is entered
        days = chains.day_files(folder)
    secret, identity = secret_file(settings), await store.meta(META) if version else None
    own_secret, own_key = settings.backend.secret_file is None, settings.audit.key_file is None
    return StateParts(
        settings=settings,
        store=StatePart("the store", store.place, version is not None, identity),
        secret=_file("the sealing secret", secret, own_secret) if secret else None,
        audit=_file("the audit folder's identity file", folder / PLACE),
        key=_file("the audit's key", key_file(settings), own_key),
        version=version,
        has_ids=bool(version and await store.meta(FINGERPRINT)),
        known=known,
        here=[chain for chain in known if chain.place == place],
        days=days,
        is_shared=heads.shared,
    )


def _file(name: str, path: Path, made_here: bool = True) -> StatePart:
    return StatePart(name, str(path), _exists(path), identity_of(path), made_here)


def is_named(path: Path) -> bool:
    """Returns whether the file holds a name, or cannot be read."""
    try:
        return bool(content_of(path.read_text("ascii")).strip())
    except UnicodeDecodeError:
        return False
    except OSError:  # later readers say why
        return True


def _exists(path: Path) -> bool:
    """Returns whether there is, or may be where this user cannot look, such a file."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def _refusals(parts: StateParts) -> Iterator[str]:
    states: dict[str, list[str]] = {}
    for part in parts:
        if part.identity:
            states.setdefault(part.identity, []).append(str(part))
    if len(states) > 1:
        owned = (f"{' and '.join(own)} of state {state}" for state, own in states.items())
        yield (
            f"these are parts of different states: {'; '.join(owned)}; put back what belongs to"
            f" the others, or move all of them away and {RESTORE}"
        )
    if not parts.store.is_there:
        yield from _without_store(parts)
        return
    if parts.secret is not None and parts.secret.is_lost and parts.has_ids:
        yield (
            f"{parts.secret} is gone: with a new one every public id would change; keep the store,"
            f" and {PUT_BACK} (it has it as sealing.secret)"
        )
    yield from _audit_refusals(parts)
    if parts.key.is_lost and parts.here:
        yield (
            f"{parts.key} is gone: put it back from a backup (`clinic-gateway state restore DIR`"
            " does, and keeps the store);"
            " `clinic-gateway audit rotate-key` makes another one, with which what was written"
            " before cannot be verified any more"
        )


def _without_store(parts: StateParts) -> Iterator[str]:
    # a secret without an identity may be the operator's, for a new state; so may a key whose place
    # the operator has named
    own = [
        part
        for part in parts.files
        if part.identity is not None or (part.is_kept and part is not parts.secret)
    ]
    traces = [day.path for day in (parts.days or [])[:1]]
    # files that show that a gateway has served here
    place, files = parts.store.place, [parts.settings.state / ACCESS]
    # beside a database file without tables they are left of a start that was cut off
    if not parts.is_shared and not _exists(Path(place)):
        files = [Path(f"{place}-wal"), Path(f"{place}-shm"), *files]
    traces += filter(_exists, files)
    if left := [*own, *traces]:
        paths = [*(Path(part.place) for part in own), *traces]
        audit = audit_folder(parts.settings)  # it goes as a whole
        away = dict.fromkeys(audit if path.parent == audit else path for path in paths)
        yield (
            f"{parts.store} is gone: {left[0]} shows that this state had one; put it back, or"
            f" {RESTORE}; to begin anew, move {' and '.join(map(str, away))} away: all keys,"
            " bookings and public ids are then lost for good"
        )


def _audit_refusals(parts: StateParts) -> Iterator[str]:
    must_be_here = parts.known and not (parts.is_shared and parts.settings.nodes > 1)
    # lines are marked as dropped in the store before their files go
    undropped = sum(max(0, chain.head.seq - chain.base.seq) for chain in parts.here)
    if parts.audit.is_lost and (must_be_here or parts.key.is_kept or parts.days):
        yield (
            f"{parts.audit} is gone, though this state has an audit: {_moved(parts)}; or put its"
            f" folder back, or keep the store, and {PUT_BACK} (it has it as audit)"
        )
    elif not is_named(Path(parts.audit.place)):
        yield (
            f"{parts.audit} holds no name of the folder: move it away, and {PUT_BACK} (it has it as"
            " audit)"
        )
    elif parts.days == [] and undropped:
        yield (
            f"all day files of the audit in {audit_folder(parts.settings)} are gone, of which the"
            f" store knows {counted(undropped, 'line')}: put them back, or keep the store, and"
            " restore them from a backup (`clinic-gateway state restore DIR`; it has them in audit)"
        )


def _moved(parts: StateParts) -> str:
    """Returns what to do where `audit.folder` was changed, and the folder was not moved."""
    folder, former = audit_folder(parts.settings), parts.settings.state / chains.FOLDER
    own = parts.store.identity
    is_own = own is not None and identity_of(former / PLACE) == own
    if folder != former and is_own and place_of(former) in {chain.place for chain in parts.known}:
        return (
            f"it is in {former}; name that folder as audit.folder, or stop the gateway and"
            f" move all of it to {folder}"
        )
    state = f" with the line `# state {parts.identity}`" if parts.identity else ""
    other = "if another node keeps it, say in `nodes` how many there are; "
    return (
        f"{other if parts.is_shared else ''}if audit.folder was changed, name its former folder"
        f" there again, which is the one that has a {PLACE}{state}"
    )
