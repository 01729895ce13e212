"""The parts of a state as they are found: which are there, and of which state each says it is."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.audit.chains import Chains
from gateway.audit.files import PLACE, DayFile, audit_folder, day_files, place_of
from gateway.audit.secrets import key_file
from gateway.identity import META, identity_of
from gateway.observe.access import ACCESS
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
    must be in this folder, `in_use` whether it knows chains of this very folder. `traces` are other
    files that show that a gateway has served here.
    """

    store: Part
    secret: Part | None
    audit: Part
    key: Part
    version: str | None
    has_ids: bool = False
    has_chains: bool = False
    in_use: bool = False
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
    secret = secret_file(settings)
    return Parts(
        store=Part(
            name="the store",
            place=store.place,
            is_there=version is not None,
            identity=await store.meta(META) if version else None,
        ),
        secret=None
        if secret is None
        else _file(SEALING, secret, settings.backend.secret_file is None),
        audit=_file("the audit folder's identity file", folder / PLACE),
        key=_file("the audit's key", key_file(settings), settings.audit.key_file is None),
        version=version,
        has_ids=bool(version and await store.meta(FINGERPRINT)),
        has_chains=bool(known) and not chains.shared,
        in_use=any(each.place == place_of(folder) for each in known),
        traces=tuple(_traces(settings, store)),
    )


def _file(name: str, path: Path, made_here: bool = True) -> Part:
    return Part(
        name=name,
        place=str(path),
        is_there=_exists(path),
        identity=identity_of(path),
        made_here=made_here,
    )


def _exists(path: Path) -> bool:
    """Whether there is such a file; where this user may not look, there may be one."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _traces(settings: Settings, store: Store) -> Iterator[Path]:
    yield from (each.path for each in _days(audit_folder(settings))[:1])
    # beside a file without tables they are of a start that was cut off
    if store.engine.dialect.name == "sqlite" and not _exists(Path(store.place)):
        yield from (path for end in ("-wal", "-shm") if _exists(path := Path(store.place + end)))
    if _exists(log := settings.state / ACCESS):
        yield log


def _days(folder: Path) -> list[DayFile]:
    """What was written there; whoever reads it says why it cannot be."""
    try:
        return day_files(folder)
    except OSError:
        return []
