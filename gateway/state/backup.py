"""Makes a backup of a state, beside a gateway that may run, and verifies one.

The store is copied first, then the files: so these know no less than it does.
"""

import asyncio
import pwd
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from os.path import realpath
from pathlib import Path

from gateway import __version__
from gateway.audit.chains import PLACE, Chains, Known, audit_folder, day_files, place_of
from gateway.audit.entries import key_file, read_secrets
from gateway.audit.verification import ChainVerdict, chains_in, elsewhere, verify
from gateway.identity import META, identity_of
from gateway.policy.cases.run import cases_beside
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import secret_file
from gateway.settings import Settings, StartRefused, shipped_policy
from gateway.state.folder import open_own_store
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
from gateway.state.parts import StateParts, check_parts, find_parts
from gateway.store import Store, open_store
from gateway.store.base import HEAD

STORE_FILE = "gateway.db"


async def back_up(settings: Settings, config: Path | None, folder: Path, now: datetime) -> Manifest:
    """A whole backup in a new folder. StartRefused, StoreError; OSError where it can't be written.

    Without its manifest, as after a kill, the folder is no backup.
    """
    store = open_own_store(settings)
    try:
        parts = await find_parts(settings, store)
        check_parts(parts)
        identity, version = _begun(parts)
        _check_sources(settings, config, parts)
        new_folder(folder)
        chains, files = await _copied(settings, config, store, folder)
        manifest = Manifest(
            identity=identity,
            made_at=now,
            version=__version__,
            store=store.place,
            migration=version,
            sealing=await store.meta(FINGERPRINT) or "",
            owner=_owner(settings.state),
            chains=chains,
            files=files,
        )
    finally:
        await store.aclose()
    write(folder, manifest)
    return manifest


def _check_sources(settings: Settings, config: Path | None, parts: StateParts) -> None:
    """StartRefused where a file is gone without which a restored gateway could not start."""
    secret = secret_file(settings) if parts.has_ids else None
    key = key_file(settings) if parts.in_use else None
    for path in (secret, key, *_named(settings, config)):
        if path is not None and not path.is_file():
            raise StartRefused(
                f"{path} is missing or is not a file, and a backup without it is not whole: put it"
                " back, then back up again"
            )


async def _copied(
    settings: Settings, config: Path | None, store: Store, folder: Path
) -> tuple[Sequence[Known], Sequence[BackupFile]]:
    """The chains that the copied store knows, and all that was copied, the store first."""
    before = await asyncio.to_thread(chains_in, audit_folder(settings))
    has_copy = await store.copy_to(folder / STORE_FILE)
    chains = await _chains(settings, store, folder / STORE_FILE if has_copy else None)
    wanted = {*before, *(chain.id for chain in chains)}

    def copied() -> list[BackupFile]:
        copy, place = folder / STORE_FILE, Path(store.place).absolute()
        stored = [backup_file(STORE, folder, copy, place)] if has_copy else []
        return [*stored, *_files(settings, config, folder, wanted)]

    return chains, await asyncio.to_thread(copied)


def _begun(parts: StateParts) -> tuple[str, str]:
    """The state's identity and migration; StartRefused where it has none."""
    if parts.store.identity is None or parts.version is None:
        raise StartRefused(
            f"{parts.store} is not there yet, or has no identity: `clinic-gateway serve` begins a"
            " state, and gives one of an earlier version its identity"
        )
    return parts.store.identity, parts.version


async def _chains(settings: Settings, store: Store, copy: Path | None) -> Sequence[Known]:
    """The chains of this folder, as the copy knows them; as the store does where there is none."""
    if copy is None:
        known = await Chains(store).known()
        others = elsewhere(known, place_of(audit_folder(settings)) or "", shared=True)
        return [each for each in known if each not in others]
    copied = open_store(copy)
    try:
        return await Chains(copied).known()
    finally:
        await copied.aclose()


def _files(
    settings: Settings, config: Path | None, folder: Path, wanted: set[str]
) -> Iterator[BackupFile]:
    """All but the store; of the audit the day files of these chains, and then the folder's name."""
    audit = audit_folder(settings)
    own, mapping, policy = _named(settings, config)
    new_folder(folder / AUDIT)
    new_folder(folder / CONFIGURATION)
    for file in day_files(audit):
        # of another chain a process has begun just now: the copied store does not know it
        if file.chain in wanted:
            yield _copied_day(folder, file.path)
    single = [
        (AUDIT, f"{AUDIT}/{PLACE}", audit / PLACE),
        (KEY, "audit.key", key_file(settings)),
        (SEALING, "sealing.secret", secret_file(settings)),
    ]
    configuration = (own, mapping, policy, policy and cases_beside(policy))
    for number, path in enumerate(configuration, 1):
        if path is not None:
            single.append((CONFIGURATION, f"{CONFIGURATION}/{number}-{path.name}", path))
    for kind, name, path in single:
        if path is not None and path.is_file():
            copy_file(path, folder / name)
            yield backup_file(kind, folder, folder / name, path)


def _copied_day(folder: Path, path: Path) -> BackupFile:
    target = folder / AUDIT / path.name
    try:
        copy_file(path, target, lines=True)
    except FileNotFoundError as error:
        raise StartRefused(
            f"{path} was old and has just been dropped: back up again, into another folder"
        ) from error
    return backup_file(AUDIT, folder, target, path)


def _named(settings: Settings, config: Path | None) -> tuple[Path | None, Path | None, Path | None]:
    """The configuration's file, the mapping and the policy; what is shipped is no part of it."""
    policy = None if settings.policy == shipped_policy() else settings.policy
    return config and config.absolute(), settings.backend.mapping, policy


def _owner(folder: Path) -> str:
    """Whose the state is; empty where that account has no name."""
    try:
        return pwd.getpwuid(folder.stat().st_uid).pw_name
    except KeyError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCheck:
    """What is wrong with a backup, each a sentence; and what is to be said of its audit."""

    problems: tuple[str, ...]
    audit: tuple[ChainVerdict, ...]

    @property
    def broken(self) -> tuple[str, ...]:
        """Where the audit was not as it was written when the backup was made."""
        return tuple(each.broken for each in self.audit if each.broken)


def verify_backup(folder: Path, manifest: Manifest) -> StateCheck:
    """Every file against the manifest, every line of the audit against the heads in it."""
    problems = [*_changed_files(folder, manifest)]
    if not problems:
        problems += [*_identities(folder, manifest), *_store(folder, manifest)]
        problems += _sealing(folder, manifest)
    if manifest.migration > HEAD:
        problems.append(
            f"{folder} was made by a later version of the gateway ({manifest.version}, migration"
            f" {manifest.migration}; this one knows {HEAD}): use that version"
        )
    return StateCheck(
        problems=tuple(problems), audit=() if problems else tuple(_verdicts(folder, manifest))
    )


def _changed_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    for each in manifest.files:
        path = folder / each.file
        if Path(realpath(path)) != Path(realpath(folder)) / each.file:
            yield f"{path} is a link, and no file of a backup"
            continue
        try:
            found = backup_file(each.kind, folder, path, Path(each.original))
        except OSError as error:
            yield f"{path} cannot be read: {(error.strerror or str(error)).lower()}"
            continue
        if (found.size, found.sha256) != (each.size, each.sha256):
            yield f"{path} is not as it was when the backup was made"


def _identities(folder: Path, manifest: Manifest) -> Iterator[str]:
    for each in manifest.of_kind(SEALING, KEY, AUDIT):
        path = folder / each.file
        found = None if each.kind == AUDIT and path.name != PLACE else identity_of(path)
        if found not in (None, manifest.identity):
            yield f"{path} is of the state {found}, the backup is of {manifest.identity}"


def _store(folder: Path, manifest: Manifest) -> Iterator[str]:
    if not manifest.has_store:
        return
    path = folder / STORE_FILE
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as store:
            told = dict(store.execute("SELECT name, value FROM meta"))
            [(migration,)] = store.execute("SELECT version_num FROM alembic_version")
    except (sqlite3.Error, ValueError) as error:
        yield f"{path} cannot be read: {error}"
        return
    expected = (manifest.identity, manifest.migration, manifest.sealing)
    if (told.get(META), migration, told.get(FINGERPRINT, "")) != expected:
        yield f"{path} is not the store that {folder}'s manifest tells of"


def _sealing(folder: Path, manifest: Manifest) -> Iterator[str]:
    """The secret is the one whose fingerprint the store has."""
    for each in manifest.of_kind(SEALING):
        path = folder / each.file
        is_own = is_secret(path, manifest.sealing)
        if is_own is None:
            yield f"{path} holds no sealing secret"
        elif not is_own:
            yield f"{path} is not the sealing secret of the store"


def _verdicts(folder: Path, manifest: Manifest) -> Iterator[ChainVerdict]:
    keys: list[BackupFile] = [*manifest.of_kind(KEY)]
    if not manifest.chains and not keys:
        return
    try:
        secrets = read_secrets(folder / keys[0].file) if keys else ()
    except StartRefused as error:
        yield ChainVerdict(chain="", broken=str(error))
        return
    audit = folder / AUDIT
    yield from verify(audit, chains_in(audit), manifest.chains, secrets)


def store_told(manifest: Manifest) -> str:
    """Which store the backup goes with, that its server dumps, and which dump."""
    return f"{manifest.store}: {dump_told(manifest)}"


def dump_told(manifest: Manifest) -> str:
    """Which dump it must be."""
    return (
        f"the dump must have the identity {manifest.identity} and the migration"
        f" {manifest.migration}"
    )
