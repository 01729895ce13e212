"""Makes a backup of a state, even while a gateway runs, and verifies one.

The store is copied before the files, so that these are never older. The manifest is written last,
so that half a backup has none. Nothing is overwritten. Every copy is whole and on disk, and only
one account can read it.
"""

import asyncio
import json
import os
import pwd
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import aclosing, closing, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import file_digest
from itertools import takewhile
from os.path import realpath
from pathlib import Path
from typing import Self

from pydantic import AwareDatetime, BaseModel, model_validator

from gateway import __version__, identity
from gateway.audit import chains
from gateway.audit.chains import Known, audit_folder
from gateway.audit.entries import key_file, read_secrets
from gateway.audit.verification import ChainVerdict, elsewhere, verify
from gateway.policy.cases import cases_beside
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import has_fingerprint, secret_file
from gateway.settings import Settings, StartRefused, shipped_policy
from gateway.settings.kinds import read_sealing_secret
from gateway.state import open_own_store
from gateway.state.integrity import checked_parts
from gateway.store import Store, open_store
from gateway.store.base import HEAD

FILE = "manifest.json"
FORMAT = 1
STORE_FILE = "gateway.db"
# The kinds of files in a backup.
STORE, SEALING, CONFIGURATION = "store", "sealing", "configuration"
KEY, AUDIT = "audit key", "audit"


class BackupFile(BaseModel, frozen=True, strict=True):
    """A file of a backup: its path in there, and the path that it was copied from."""

    kind: str
    file: Path
    original: Path
    size: int
    sha256: str

    @classmethod
    def of(cls, kind: str, folder: Path, name: str | Path, original: Path) -> Self:
        """Describes a file in a backup's folder as it is now. Raises OSError."""
        with (folder / name).open("rb") as stream:
            digest, size = file_digest(stream, "sha256").hexdigest(), stream.tell()
        # a setting such as ../state leaves dots in the path
        place = Path(os.path.abspath(original))  # noqa: PTH100 - links stay as they are named
        return cls(kind=kind, file=Path(name), original=place, size=size, sha256=digest)

    @model_validator(mode="after")
    def _leads_nowhere_else(self) -> Self:
        is_inside = not self.file.is_absolute() and self.original.is_absolute()
        if not is_inside or ".." in (*self.file.parts, *self.original.parts):
            raise ValueError(f"{self.file} or {self.original} leads out")
        return self


class Manifest(BaseModel, frozen=True, strict=True, ser_json_bytes="hex", val_json_bytes="hex"):
    """What a backup says of itself.

    `store` is the place of the store, `migration` its version, `owner` the name of the account that
    owns the state. `sealing` is the fingerprint of the sealing secret, empty before its first use.
    `chains` are the chains of the audit folder, with their heads.
    """

    identity: str
    made_at: AwareDatetime
    version: str
    store: str
    migration: str
    sealing: str
    owner: str
    chains: Sequence[Known]
    files: Sequence[BackupFile]
    format: int = FORMAT

    @property
    def has_store(self) -> bool:
        """Whether the store itself is in the backup; that of PostgreSQL is not."""
        return any(self.of_kind(STORE))

    @property
    def configuration(self) -> Path | None:
        """Where the configuration's own file was; None where there was none."""
        own = (file for file in self.of_kind(CONFIGURATION) if file.file.name.startswith("1-"))
        return next((file.original for file in own), None)

    @property
    def dump(self) -> str:
        """A sentence that says which dump goes with a backup that holds no store."""
        return f"the dump must have the identity {self.identity} and the migration {self.migration}"

    def of_kind(self, *kinds: str) -> Iterator[BackupFile]:
        """Yields the files of these kinds, in the order of the kinds."""
        yield from (file for kind in kinds for file in self.files if file.kind == kind)


def read_manifest(folder: Path) -> Manifest:
    """Returns the manifest of a backup; raises StartRefused where it is missing or wrong."""
    path = folder / FILE
    odd = f"{path} is not as it was written: use another backup"
    try:
        text = path.read_text("utf-8")
        if json.loads(text)["format"] != FORMAT:
            raise StartRefused(f"{path} is of another version of the gateway: use that version")
        manifest = Manifest.model_validate_json(text)
        if any(chain.begun.tzinfo is None for chain in manifest.chains):
            raise StartRefused(odd)
    except FileNotFoundError as error:
        raise StartRefused(
            f"{folder} is no whole backup: it has no {FILE}, which is written last; name another"
        ) from error
    except OSError as error:
        raise StartRefused(f"{path} cannot be read: {identity.reason_of(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StartRefused(odd) from error
    return manifest


async def back_up(settings: Settings, config: Path | None, folder: Path, now: datetime) -> Manifest:
    """Writes a backup into a new folder. Raises StartRefused, StoreError and OSError."""
    async with aclosing(open_own_store(settings)) as store:
        parts = await checked_parts(settings, store)
        if parts.store.identity is None or parts.version is None:
            raise StartRefused(
                f"{parts.store} is not there yet, or has no identity: `clinic-gateway serve` begins"
                " a state, and gives one of an earlier version its identity"
            )
        policy = None if settings.policy == shipped_policy() else settings.policy
        cases = policy and cases_beside(policy)
        # the shipped policy is no part of a backup
        own = config and config.absolute()  # noqa: ASYNC240 - this asks no disk
        named = (own, settings.backend.mapping, policy, cases)
        secret = secret_file(settings) if parts.has_ids else None
        for path in (secret, key_file(settings) if parts.here else None, *named[:3]):
            if path is not None and not path.is_file():
                raise StartRefused(
                    f"{path} is missing or is not a file, and a backup without it is not whole: put"
                    " it back, then back up again"
                )
        for path in (settings.state, *named):
            if str(path).encode(errors="ignore").decode() != str(path):
                raise StartRefused(
                    f"the name {str(path)!a} is not UTF-8, in which a backup says where its"
                    " files came from: rename it, then back up again"
                )
        new_folder(folder)
        known, files = await _copied(settings, named, store, folder)
        owner = ""
        with suppress(KeyError):  # that account may have no name
            owner = pwd.getpwuid(settings.state.stat().st_uid).pw_name
        manifest = Manifest(
            identity=parts.store.identity,
            made_at=now,
            version=__version__,
            store=store.place,
            migration=parts.version,
            sealing=await store.meta(FINGERPRINT) or "",
            owner=owner,
            chains=known,
            files=files,
        )
    identity.write_new(folder / FILE, manifest.model_dump_json(indent=2) + "\n")
    return manifest


async def _copied(
    settings: Settings, named: Sequence[Path | None], store: Store, folder: Path
) -> tuple[Sequence[Known], Sequence[BackupFile]]:
    """Copies the state. Returns the chains that the store knew, and the files, the store first."""
    before = await asyncio.to_thread(chains.files_by_chain, audit_folder(settings))
    copy = folder / STORE_FILE
    has_copy = await store.copy_to(copy)
    async with aclosing(open_store(copy)) if has_copy else nullcontext(store) as copied:
        known = await chains.Chains(copied).known()
    if not has_copy:  # several nodes share the store: only the chains of this folder
        others = elsewhere(known, chains.place_of(audit_folder(settings)) or "", shared=True)
        known = [chain for chain in known if chain not in others]
    ids = {*before, *(chain.id for chain in known)}
    files = await asyncio.to_thread(lambda: [*_files(settings, named, folder, ids)])
    if has_copy:
        place = Path(store.place)
        files.insert(0, await asyncio.to_thread(BackupFile.of, STORE, folder, STORE_FILE, place))
    return known, files


def _files(
    settings: Settings, named: Sequence[Path | None], folder: Path, ids: set[str]
) -> Iterator[BackupFile]:
    """Copies and yields all files but the store; of the audit only the days of these chains."""
    audit = audit_folder(settings)
    new_folder(folder / AUDIT)
    new_folder(folder / CONFIGURATION)
    for day in chains.day_files(audit):
        # the copied store does not know a chain that a process has begun just now
        if day.chain in ids:
            try:
                yield _copy(AUDIT, folder, f"{AUDIT}/{day.path.name}", day.path, lines=True)
            except FileNotFoundError as error:
                raise StartRefused(
                    f"{day.path} was old and has just been dropped: back up again, into another"
                    " folder"
                ) from error
    single = [
        (AUDIT, f"{AUDIT}/{chains.PLACE}", audit / chains.PLACE),
        (KEY, "audit.key", key_file(settings)),
        (SEALING, "sealing.secret", secret_file(settings)),
    ]
    for number, path in enumerate(named, 1):
        single.append((CONFIGURATION, f"{CONFIGURATION}/{number}-{path and path.name}", path))
    for kind, name, path in single:
        if path is not None and path.is_file():
            yield _copy(kind, folder, name, path)


def _copy(kind: str, folder: Path, name: str, source: Path, *, lines: bool = False) -> BackupFile:
    copy_file(source, folder / name, lines=lines)
    return BackupFile.of(kind, folder, name, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCheck:
    """What is wrong with a state or a backup, each a sentence, and the verdicts on its audit."""

    problems: tuple[str, ...]
    audit: tuple[ChainVerdict, ...]

    @property
    def broken(self) -> tuple[str, ...]:
        """Where the audit is not as it was written."""
        return tuple(verdict.broken for verdict in self.audit if verdict.broken)


def verify_backup(folder: Path, manifest: Manifest) -> StateCheck:
    """Compares every file with the manifest, and every line of the audit with the heads in it."""
    problems = [*_changed_files(folder, manifest)] or [*_foreign_files(folder, manifest)]
    if manifest.migration > HEAD:
        problems.append(
            f"{folder} was made by a later version of the gateway ({manifest.version}, migration"
            f" {manifest.migration}; this one knows {HEAD}): use that version"
        )
    audit = () if problems else tuple(_verdicts(folder, manifest))
    return StateCheck(problems=tuple(problems), audit=audit)


def _changed_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    for file in manifest.files:
        path = folder / file.file
        if Path(realpath(path)) != Path(realpath(folder)) / file.file:
            yield f"{path} is a link, and no file of a backup"
            continue
        try:
            if BackupFile.of(file.kind, folder, file.file, file.original) != file:
                yield f"{path} is not as it was when the backup was made"
        except OSError as error:
            yield f"{path} cannot be read: {identity.reason_of(error)}"


def _foreign_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yields a sentence for each file of another state, for a foreign secret or another store."""
    for file in manifest.of_kind(SEALING, KEY, AUDIT):
        path = folder / file.file
        has_identity = file.kind != AUDIT or path.name == chains.PLACE
        state = identity.identity_of(path) if has_identity else None
        if state not in (None, manifest.identity):
            yield f"{path} is of the state {state}, the backup is of {manifest.identity}"
        if file.kind == SEALING and not (is_own := is_secret(path, manifest.sealing)):
            flaw = "holds no sealing secret"
            yield f"{path} {flaw if is_own is None else 'is not the sealing secret of the store'}"
    if not manifest.has_store:
        return
    path = folder / STORE_FILE
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as store:
            meta = dict(store.execute("SELECT name, value FROM meta"))
            [(migration,)] = store.execute("SELECT version_num FROM alembic_version")
    except (sqlite3.Error, ValueError) as error:
        yield f"{path} cannot be read: {error}"
        return
    expected = (manifest.identity, manifest.migration, manifest.sealing)
    if (meta.get(identity.META), migration, meta.get(FINGERPRINT, "")) != expected:
        yield f"{path} is not the store that {folder}'s manifest tells of"


def _verdicts(folder: Path, manifest: Manifest) -> Iterator[ChainVerdict]:
    keys = [*manifest.of_kind(KEY)]
    if not manifest.chains and not keys:
        return
    try:
        secrets = read_secrets(folder / keys[0].file) if keys else ()
    except StartRefused as error:
        yield ChainVerdict(chain="", broken=str(error))
        return
    audit = folder / AUDIT
    yield from verify(audit, chains.files_by_chain(audit), manifest.chains, secrets)


def is_secret(path: Path, fingerprint: str) -> bool | None:
    """Returns whether a file holds the secret of that fingerprint; None where it holds none."""
    try:
        secret = read_sealing_secret(identity.content_of(path.read_text("ascii")))
    except (OSError, ValueError):
        return None
    return not fingerprint or has_fingerprint(secret, fingerprint)


def new_folder(folder: Path) -> None:
    """Makes a folder for its owner alone; raises StartRefused where it is not empty."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StartRefused(f"{folder} is not empty: name a new folder, nothing is overwritten")
        folder.chmod(0o700)
    except OSError as error:
        reason = identity.reason_of(error)
        raise StartRefused(f"the folder {folder} cannot be made: {reason}") from error


def copy_file(
    source: Path, target: Path, account: identity.Account | None = None, *, lines: bool = False
) -> None:
    """Copies a file, or its whole lines, for an account. Raises OSError, which names the file."""
    identity.write_pieces(target, _pieces(source, lines=lines), account)
    chains.sync_folder(target.parent)


def _pieces(source: Path, *, lines: bool) -> Iterator[bytes]:
    """Yields the content of a file, or only its whole lines. Raises OSError, which names it."""
    try:
        with source.open("rb") as file:
            if lines:
                yield from takewhile(lambda line: line.endswith(b"\n"), file)
            else:
                yield from iter(partial(file.read, 1 << 20), b"")
    except OSError as error:
        error.filename = str(source)
        raise
