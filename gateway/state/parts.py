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
from gateway.observe.logs import ACCESS
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import secret_file
from gateway.settings import Settings, StartRefused
from gateway.store import Store
from gateway.store.base import HEAD

SEALING = "the sealing secret"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StateParts:
    """All parts; `secret` is None where the settings hold the secret themselves.

    `version` is the store's migration, None where there is no store. `has_ids` is whether public
    ids were made with its sealing secret, `has_chains` whether it knows chains of the audit that
    must be in this folder, `in_use` whether it knows chains of this very folder. `lost_lines` are
    the lines of such chains that no retention has dropped, where the folder has no day file at all.
    `is_named` is false where the audit folder's identity file was read and holds no name. `former`
    is another folder that has the audit of this state. `is_shared` is whether other machines may
    use the store too. `traces` are other files that show that a gateway has served here.
    """

    store: StatePart
    secret: StatePart | None
    audit: StatePart
    key: StatePart
    version: str | None
    has_ids: bool = False
    has_chains: bool = False
    in_use: bool = False
    lost_lines: int = 0
    is_named: bool = True
    former: Path | None = None
    is_shared: bool = False
    traces: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[StatePart]:
        yield from (self.store, *self.files)

    @property
    def files(self) -> Iterator[StatePart]:
        """Those that are one file each."""
        yield from (self.audit, self.key)
        if self.secret is not None:
            yield self.secret

    @property
    def folder(self) -> Path:
        """The audit folder."""
        return Path(self.audit.place).parent

    @property
    def has_days(self) -> bool:
        """Whether a day file of the audit is among the traces."""
        return any(path.suffix == ".jsonl" and path.name[:1].isdigit() for path in self.traces)

    @property
    def identity(self) -> str | None:
        """That of the state, where its parts agree; None where none of them has one."""
        return next((each.identity for each in self if each.identity), None)


async def find_parts(settings: Settings, store: Store) -> StateParts:
    """What there is; nothing is made. StoreError, StartRefused where it cannot be looked at."""
    version = await store.version()
    folder, chains = audit_folder(settings), Chains(store)
    # the tables of an older version are asked once they have been brought up to this one
    known = await chains.known() if version == HEAD else []
    place = place_of(folder)
    here = [each for each in known if each.place == place]
    days: list[DayFile] | None = None
    with suppress(OSError):  # whoever reads them says why they cannot be read
        # once the chains are known: a process that begins has a file before it has a line
        days = day_files(folder)
    # the store is told of dropped lines before their files go; who was killed may have told of less
    undropped = sum(max(0, chain.head.seq - chain.base.seq) for chain in here)
    secret = secret_file(settings)
    identity = await store.meta(META) if version else None
    return StateParts(
        store=StatePart("the store", store.place, version is not None, identity),
        secret=_file(SEALING, secret, settings.backend.secret_file is None) if secret else None,
        audit=_file("the audit folder's identity file", folder / PLACE),
        key=_file("the audit's key", key_file(settings), settings.audit.key_file is None),
        version=version,
        has_ids=bool(version and await store.meta(FINGERPRINT)),
        has_chains=bool(known) and not (chains.shared and settings.nodes > 1),
        in_use=bool(here),
        lost_lines=undropped if days == [] else 0,
        is_named=is_named(folder / PLACE),
        former=_former(settings, known, identity),
        is_shared=chains.shared,
        traces=tuple(_traces(settings, store, days or [])),
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
        return True
    return True


def _traces(settings: Settings, store: Store, days: Sequence[DayFile]) -> Iterator[Path]:
    yield from (each.path for each in days[:1])
    # beside a file without tables they are of a start that was cut off
    if store.engine.dialect.name == "sqlite" and not _exists(Path(store.place)):
        yield from (path for end in ("-wal", "-shm") if _exists(path := Path(store.place + end)))
    if _exists(log := settings.state / ACCESS):
        yield log


def _former(settings: Settings, chains: Sequence[Known], identity: str | None) -> Path | None:
    """The folder in the state folder, where the settings name another one."""
    folder = settings.state / FOLDER
    if folder == audit_folder(settings) or identity is None:
        return None
    is_own = identity_of(folder / PLACE) == identity
    place = place_of(folder)
    return folder if is_own and any(each.place == place for each in chains) else None


def check_parts(parts: StateParts) -> None:
    """StartRefused where they are of several states, or one of them is gone."""
    for said in _refusals(parts):
        raise StartRefused(said)


def _refusals(parts: StateParts) -> Iterator[str]:
    yield from _mixed([part for part in parts if part.identity])
    if not parts.store.is_there:
        yield from _without_store(parts)
        return
    if _is_lost(parts.secret) and parts.has_ids:
        yield (
            f"{parts.secret} is gone: with a new one every public id would change; keep the store,"
            f" and {PUT_BACK} (it has it as sealing.secret)"
        )
    if _is_lost(parts.audit) and (parts.has_chains or _is_kept(parts.key) or parts.has_days):
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
            f"all day files of the audit in {parts.folder} are gone, of which the store knows"
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


def _mixed(parts: list[StatePart]) -> Iterator[str]:
    """Parts of several states; those of each are named together."""
    states: dict[str, list[str]] = {}
    for part in parts:
        states.setdefault(part.identity or "", []).append(str(part))
    if len(states) > 1:
        told = "; ".join(f"{' and '.join(own)} of state {state}" for state, own in states.items())
        yield (
            f"these are parts of different states: {told}; put back what belongs to the others, or"
            f" move all of them away and {RESTORE}"
        )


def _without_store(parts: StateParts) -> Iterator[str]:
    own = [part for part in parts.files if _belongs(part)]
    left: list[StatePart | Path] = [*own, *parts.traces]
    if left:
        paths = [*(Path(part.place) for part in own), *parts.traces]
        audit = parts.folder  # it goes as a whole
        away = dict.fromkeys(audit if path.parent == audit else path for path in paths)
        yield (
            f"{parts.store} is gone: {left[0]} shows that this state had one; put it back, or"
            f" {RESTORE}; to begin anew, move {' and '.join(map(str, away))} away: all keys,"
            " bookings and public ids are then lost for good"
        )


def _belongs(part: StatePart) -> bool:
    """Whether it is of a state; a secret that does not say so may be the operator's for a new one.

    So may a key whose place the operator has named.
    """
    return part.identity is not None or (_is_kept(part) and part.name != SEALING)


def _moved(parts: StateParts) -> str:
    """What to do where `audit.folder` was changed, and the folder stayed where it was."""
    if parts.former is not None:
        return (
            f"it is in {parts.former}; name that folder as audit.folder, or stop the gateway and"
            f" move all of it to {parts.folder}"
        )
    state = f" with the line `# state {parts.identity}`" if parts.identity else ""
    nodes = (
        "if another node keeps it, say in `nodes` how many there are; " if parts.is_shared else ""
    )
    return (
        f"{nodes}if audit.folder was changed, name its former folder there again, which is the one"
        f" that has a {PLACE}{state}"
    )


def _is_lost(part: StatePart | None) -> bool:
    """Whether it is not there, and the gateway itself would make it."""
    return part is not None and part.made_here and not part.is_there


def _is_kept(part: StatePart) -> bool:
    return part.made_here and part.is_there
