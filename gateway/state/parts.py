"""The parts of a state as they are found: which are there, and of which state each says it is."""

from collections.abc import Iterator, Sequence
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
from gateway.identity import META, content_of, identity_of
from gateway.observe.logs import ACCESS
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import secret_file
from gateway.settings import Settings
from gateway.store import Store
from gateway.store.base import HEAD

SEALING = "the sealing secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part; `made_here` is whether the gateway itself made it, and not the operator."""

    name: str
    place: str
    is_there: bool
    identity: str | None = None
    made_here: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All parts; `secret` is None where the settings hold the secret themselves.

    `version` is the store's migration, None where there is no store. `has_ids` is whether public
    ids were made with its sealing secret, `has_chains` whether it knows chains of the audit that
    must be in this folder, `in_use` whether it knows chains of this very folder. `lost_lines` are
    the lines of such chains that no retention has dropped, where the folder has no day file at all.
    `is_named` is false where the audit folder's identity file was read and holds no name. `former`
    is another folder that has the audit of this state. `is_shared` is whether other machines may
    use the store too. `traces` are other files that show that a gateway has served here.
    """

    store: Part
    secret: Part | None
    audit: Part
    key: Part
    version: str | None
    has_ids: bool = False
    has_chains: bool = False
    in_use: bool = False
    lost_lines: int = 0
    is_named: bool = True
    former: Path | None = None
    is_shared: bool = False
    traces: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[Part]:
        yield from (self.store, *self.files)

    @property
    def files(self) -> Iterator[Part]:
        """Those that are one file each."""
        yield from (self.audit, self.key)
        if self.secret is not None:
            yield self.secret

    @property
    def identity(self) -> str | None:
        """That of the state, where its parts agree; None where none of them has one."""
        return next((each.identity for each in self if each.identity), None)


async def find_parts(settings: Settings, store: Store) -> Parts:
    """What there is; nothing is made. StoreError, StartRefused where it cannot be looked at."""
    version = await store.version()
    folder, chains = audit_folder(settings), Chains(store)
    # the tables of an older version are asked once they have been brought up to this one
    known = await chains.known() if version == HEAD else []
    place = place_of(folder)
    here = [each for each in known if each.place == place]
    # looked for once the chains are known: a process that begins has a file before it has a line
    days = _days(folder)
    secret = secret_file(settings)
    identity = await store.meta(META) if version else None
    return Parts(
        store=Part(
            name="the store",
            place=store.place,
            is_there=version is not None,
            identity=identity,
        ),
        secret=None
        if secret is None
        else _file(SEALING, secret, settings.backend.secret_file is None),
        audit=_file("the audit folder's identity file", folder / PLACE),
        key=_file("the audit's key", key_file(settings), settings.audit.key_file is None),
        version=version,
        has_ids=bool(version and await store.meta(FINGERPRINT)),
        has_chains=bool(known) and not (chains.shared and settings.nodes > 1),
        in_use=bool(here),
        lost_lines=sum(map(_undropped, here)) if days == [] else 0,
        is_named=is_named(folder / PLACE),
        former=_former(settings, known, identity),
        is_shared=chains.shared,
        traces=tuple(_traces(settings, store, days or [])),
    )


def _file(name: str, path: Path, made_here: bool = True) -> Part:
    return Part(
        name=name,
        place=str(path),
        is_there=_exists(path),
        identity=identity_of(path),
        made_here=made_here,
    )


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


def _undropped(chain: Known) -> int:
    """Lines that no retention has dropped: the store is told of those before their files go.

    A process that was killed may have written more than the store knew when that was dropped.
    """
    return max(0, chain.head.seq - chain.base.seq)


def _former(settings: Settings, chains: Sequence[Known], identity: str | None) -> Path | None:
    """The folder in the state folder, where the settings name another one."""
    folder = settings.state / FOLDER
    if folder == audit_folder(settings) or identity is None:
        return None
    is_own = identity_of(folder / PLACE) == identity
    place = place_of(folder)
    return folder if is_own and any(each.place == place for each in chains) else None


def _days(folder: Path) -> list[DayFile] | None:
    """What was written there; None where it cannot be read, and whoever reads it says why."""
    try:
        return day_files(folder)
    except OSError:
        return None
