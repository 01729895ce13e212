"""The parts of a state: which are there, of which state each is, and whether they fit together."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.audit.chains import (
    FOLDER,
    PLACE,
    Chains,
    DayFile,
    Known,
    audit_folder,
    day_files,
    place_of,
)
from gateway.audit.entries import key_file
from gateway.audit.verification import counted
from gateway.identity import META, content_of, identity_of
from gateway.observe.access_log import ACCESS
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import secret_file
from gateway.settings import Settings, StartRefused
from gateway.store import Store
from gateway.store.base import HEAD

RESTORE = "restore a backup (`clinic-gateway state restore DIR`)"
PUT_BACK = "put the file back from a backup (`clinic-gateway state restore DIR`)"


@dataclass(frozen=True, slots=True)
class StatePart:
    """One part; `made_here` is whether the gateway itself made it, and not the operator."""

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
    """All parts; `secret` is None where the settings hold the secret themselves.

    `version` is the store's migration, None where there is no store. `has_ids` is whether public
    ids were made with its sealing secret, `has_chains` whether it knows chains of the audit that
    must be in this folder, `in_use` whether it knows chains of this very folder. `lost_lines` are
    the lines of such chains that no retention has dropped, where the folder has no day file at all.
    `former` is another folder that has the audit of this state. `is_shared` is whether other
    machines may use the store too. `has_days` is whether the audit has files, and `traces` are
    files that show that a gateway has served here.
    """

    store: StatePart
    secret: StatePart | None
    audit: StatePart
    key: StatePart
    version: str | None
    has_ids: bool
    has_chains: bool
    in_use: bool
    lost_lines: int
    former: Path | None
    is_shared: bool
    has_days: bool
    traces: Sequence[Path]

    def __iter__(self) -> Iterator[StatePart]:
        yield from (self.store, *self.files)

    @property
    def files(self) -> Iterator[StatePart]:
        """Those that are one file each."""
        yield from (part for part in (self.audit, self.key, self.secret) if part is not None)

    @property
    def folder(self) -> Path:
        """The audit folder."""
        return Path(self.audit.place).parent

    @property
    def identity(self) -> str | None:
        """That of the state, where its parts agree; None where none of them has one."""
        return next((part.identity for part in self if part.identity), None)


async def checked_parts(settings: Settings, store: Store) -> StateParts:
    """As `find_parts`; StartRefused too where they are of several states, or one is gone."""
    parts = await find_parts(settings, store)
    for refusal in _refusals(parts):
        raise StartRefused(refusal)
    return parts


async def find_parts(settings: Settings, store: Store) -> StateParts:
    """What there is; nothing is made. StoreError, StartRefused where it cannot be looked at."""
    version = await store.version()
    folder, chains = audit_folder(settings), Chains(store)
    # the tables of an older version are asked once they have been brought up to this one
    known = await chains.known() if version == HEAD else []
    place = place_of(folder)
    here = [chain for chain in known if chain.place == place]
    days: list[DayFile] | None = None
    with suppress(OSError):  # whoever reads them says why they cannot be read
        # once the chains are known: a process that begins has a file before it has a line
        days = day_files(folder)
    # the store is told of dropped lines before their files go; who was killed may have told of less
    undropped = sum(max(0, chain.head.seq - chain.base.seq) for chain in here)
    secret, traces = secret_file(settings), [settings.state / ACCESS]
    # beside a file without tables they are of a start that was cut off
    if store.engine.dialect.name == "sqlite" and not _exists(Path(store.place)):
        traces = [Path(f"{store.place}-wal"), Path(f"{store.place}-shm"), *traces]
    identity = await store.meta(META) if version else None
    own_secret, own_key = settings.backend.secret_file is None, settings.audit.key_file is None
    return StateParts(
        store=StatePart("the store", store.place, version is not None, identity),
        secret=_file("the sealing secret", secret, own_secret) if secret else None,
        audit=_file("the audit folder's identity file", folder / PLACE),
        key=_file("the audit's key", key_file(settings), own_key),
        version=version,
        has_ids=bool(version and await store.meta(FINGERPRINT)),
        has_chains=bool(known) and not (chains.shared and settings.nodes > 1),
        in_use=bool(here),
        lost_lines=undropped if days == [] else 0,
        former=_former(settings, known, identity),
        is_shared=chains.shared,
        has_days=bool(days),
        traces=[*(day.path for day in (days or [])[:1]), *filter(_exists, traces)],
    )


def _file(name: str, path: Path, made_here: bool = True) -> StatePart:
    return StatePart(name, str(path), _exists(path), identity_of(path), made_here)


def is_named(path: Path) -> bool:
    """Whether the file holds a name; also where nobody can tell, as it cannot be read."""
    try:
        return bool(content_of(path.read_text("ascii")).strip())
    except UnicodeDecodeError:
        return False
    except OSError:  # whoever needs its name says why it cannot be read
        return True


def _exists(path: Path) -> bool:
    """Whether there is such a file; where this user may not look, there may be one."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def _former(settings: Settings, chains: Sequence[Known], identity: str | None) -> Path | None:
    """The folder in the state folder, where the settings name another one."""
    folder = settings.state / FOLDER
    if folder == audit_folder(settings) or identity is None:
        return None
    is_own = identity_of(folder / PLACE) == identity
    place = place_of(folder)
    return folder if is_own and any(chain.place == place for chain in chains) else None


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
    if parts.key.is_lost and parts.in_use:
        yield (
            f"{parts.key} is gone: put it back from a backup (`clinic-gateway state restore DIR`"
            " does, and keeps the store);"
            " `clinic-gateway audit rotate-key` makes another one, with which what was written"
            " before cannot be verified any more"
        )


def _without_store(parts: StateParts) -> Iterator[str]:
    # a secret that does not say of which state it is may be the operator's for a new one, and so
    # may a key whose place the operator has named
    own = [
        part
        for part in parts.files
        if part.identity is not None or (part.is_kept and part is not parts.secret)
    ]
    if left := [*own, *parts.traces]:
        paths = [*(Path(part.place) for part in own), *parts.traces]
        audit = parts.folder  # it goes as a whole
        away = dict.fromkeys(audit if path.parent == audit else path for path in paths)
        yield (
            f"{parts.store} is gone: {left[0]} shows that this state had one; put it back, or"
            f" {RESTORE}; to begin anew, move {' and '.join(map(str, away))} away: all keys,"
            " bookings and public ids are then lost for good"
        )


def _audit_refusals(parts: StateParts) -> Iterator[str]:
    if parts.audit.is_lost and (parts.has_chains or parts.key.is_kept or parts.has_days):
        yield (
            f"{parts.audit} is gone, though this state has an audit: {_moved(parts)}; or put its"
            f" folder back, or keep the store, and {PUT_BACK} (it has it as audit)"
        )
    elif not is_named(Path(parts.audit.place)):
        yield (
            f"{parts.audit} holds no name of the folder: move it away, and {PUT_BACK} (it has it as"
            " audit)"
        )
    elif parts.lost_lines:
        yield (
            f"all day files of the audit in {parts.folder} are gone, of which the store knows"
            f" {counted(parts.lost_lines, 'line')}: put them back, or keep the store, and restore"
            " them from a backup (`clinic-gateway state restore DIR`; it has them in audit)"
        )


def _moved(parts: StateParts) -> str:
    """What to do where `audit.folder` was changed, and the folder stayed where it was."""
    if parts.former is not None:
        return (
            f"it is in {parts.former}; name that folder as audit.folder, or stop the gateway and"
            f" move all of it to {parts.folder}"
        )
    state = f" with the line `# state {parts.identity}`" if parts.identity else ""
    other = "if another node keeps it, say in `nodes` how many there are; "
    return (
        f"{other if parts.is_shared else ''}if audit.folder was changed, name its former folder"
        f" there again, which is the one that has a {PLACE}{state}"
    )
