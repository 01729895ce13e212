"""Makes a backup of a state, beside a gateway that may run, and verifies one.

The store is copied first, then the files: so these know no less than it does.
"""

import asyncio
import pwd
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass
from datetime import datetime
from os.path import realpath
from pathlib import Path

from gateway import __version__
from gateway.audit.chains import PLACE, Chains, Known, audit_folder, day_files, place_of
from gateway.audit.entries import key_file, read_secrets
from gateway.audit.verification import ChainVerdict, chains_in, elsewhere, verify
from gateway.identity import META, identity_of, reason_of
from gateway.policy.cases.run import cases_beside
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import secret_file
from gateway.settings import Settings, StartRefused, shipped_policy
from gateway.state import open_own_store
from gateway.state.manifest import (
    AUDIT,
    CONFIGURATION,
    KEY,
    SEALING,
    STORE,
    BackupFile,
    Manifest,
    backup_file,
    copy_file,
    is_secret,
    new_folder,
    write,
)
from gateway.state.parts import checked_parts
from gateway.store import Store, open_store
from gateway.store.base import HEAD

STORE_FILE = "gateway.db"


async def back_up(settings: Settings, config: Path | None, folder: Path, now: datetime) -> Manifest:
    """A whole backup in a new folder. StartRefused, StoreError; OSError where it can't be written.

    Without its manifest, as after a kill, the folder is no backup.
    """
    async with aclosing(open_own_store(settings)) as store:
        parts = await checked_parts(settings, store)
        if parts.store.identity is None or parts.version is None:
            raise StartRefused(
                f"{parts.store} is not there yet, or has no identity: `clinic-gateway serve` begins"
                " a state, and gives one of an earlier version its identity"
            )
        policy = None if settings.policy == shipped_policy() else settings.policy
        cases = policy and cases_beside(policy)
        # what is shipped is no part of it
        own = config and config.absolute()  # noqa: ASYNC240 - this asks no disk
        named = (own, settings.backend.mapping, policy, cases)
        secret = secret_file(settings) if parts.has_ids else None
        for path in (secret, key_file(settings) if parts.in_use else None, *named[:3]):
            if path is not None and not path.is_file():
                raise StartRefused(
                    f"{path} is missing or is not a file, and a backup without it is not whole: put"
                    " it back, then back up again"
                )
        new_folder(folder)
        chains, files = await _copied(settings, named, store, folder)
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
            chains=chains,
            files=files,
        )
    write(folder, manifest)
    return manifest


async def _copied(
    settings: Settings, named: Sequence[Path | None], store: Store, folder: Path
) -> tuple[Sequence[Known], Sequence[BackupFile]]:
    """The chains that the copied store knows, and all that was copied, the store first."""
    before = await asyncio.to_thread(chains_in, audit_folder(settings))
    copy = folder / STORE_FILE
    has_copy = await store.copy_to(copy)
    copied = open_store(copy) if has_copy else store
    try:
        chains = await Chains(copied).known()
    finally:
        if has_copy:
            await copied.aclose()
    if not has_copy:  # the store of several nodes: those of this folder
        others = elsewhere(chains, place_of(audit_folder(settings)) or "", shared=True)
        chains = [chain for chain in chains if chain not in others]
    wanted = {*before, *(chain.id for chain in chains)}

    def files() -> list[BackupFile]:
        place = Path(store.place).absolute()
        stored = [backup_file(STORE, folder, copy, place)] if has_copy else []
        return [*stored, *_files(settings, named, folder, wanted)]

    return chains, await asyncio.to_thread(files)


def _files(
    settings: Settings, named: Sequence[Path | None], folder: Path, wanted: set[str]
) -> Iterator[BackupFile]:
    """All but the store; of the audit the day files of these chains, and then the folder's name."""
    audit = audit_folder(settings)
    new_folder(folder / AUDIT)
    new_folder(folder / CONFIGURATION)
    for day in day_files(audit):
        # of another chain a process has begun just now: the copied store does not know it
        if day.chain in wanted:
            target = folder / AUDIT / day.path.name
            try:
                copy_file(day.path, target, lines=True)
            except FileNotFoundError as error:
                raise StartRefused(
                    f"{day.path} was old and has just been dropped: back up again, into another"
                    " folder"
                ) from error
            yield backup_file(AUDIT, folder, target, day.path)
    single = [
        (AUDIT, f"{AUDIT}/{PLACE}", audit / PLACE),
        (KEY, "audit.key", key_file(settings)),
        (SEALING, "sealing.secret", secret_file(settings)),
    ]
    for number, path in enumerate(named, 1):
        single.append((CONFIGURATION, f"{CONFIGURATION}/{number}-{path and path.name}", path))
    for kind, name, path in single:
        if path is not None and path.is_file():
            copy_file(path, folder / name)
            yield backup_file(kind, folder, folder / name, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCheck:
    """What is wrong with a backup, each a sentence; and what is to be said of its audit."""

    problems: tuple[str, ...]
    audit: tuple[ChainVerdict, ...]

    @property
    def broken(self) -> tuple[str, ...]:
        """Where the audit was not as it was written when the backup was made."""
        return tuple(verdict.broken for verdict in self.audit if verdict.broken)


def verify_backup(folder: Path, manifest: Manifest) -> StateCheck:
    """Every file against the manifest, every line of the audit against the heads in it."""
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
            found = backup_file(file.kind, folder, path, Path(file.original))
        except OSError as error:
            yield f"{path} cannot be read: {reason_of(error)}"
            continue
        if (found.size, found.sha256) != (file.size, file.sha256):
            yield f"{path} is not as it was when the backup was made"


def _foreign_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Those that are of another state, and a secret whose fingerprint is not the store's."""
    for file in manifest.of_kind(SEALING, KEY, AUDIT):
        path = folder / file.file
        found = None if file.kind == AUDIT and path.name != PLACE else identity_of(path)
        if found not in (None, manifest.identity):
            yield f"{path} is of the state {found}, the backup is of {manifest.identity}"
    if manifest.has_store:
        yield from _foreign_store(folder, manifest)
    for file in manifest.of_kind(SEALING):
        path = folder / file.file
        is_own = is_secret(path, manifest.sealing)
        if is_own is None:
            yield f"{path} holds no sealing secret"
        elif not is_own:
            yield f"{path} is not the sealing secret of the store"


def _foreign_store(folder: Path, manifest: Manifest) -> Iterator[str]:
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
    if (meta.get(META), migration, meta.get(FINGERPRINT, "")) != expected:
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
    yield from verify(audit, chains_in(audit), manifest.chains, secrets)


def dump_told(manifest: Manifest) -> str:
    """Which dump of its server goes with a backup without a store."""
    return (
        f"the dump must have the identity {manifest.identity} and the migration"
        f" {manifest.migration}"
    )
