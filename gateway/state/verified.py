"""Whether a backup is whole, of one state, and as it was made."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path

from gateway.audit.chains import PLACE
from gateway.audit.entries import read_secrets
from gateway.audit.verification import ChainVerdict, chains_in, verify
from gateway.identity import META, content_of, identity_of
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import has_fingerprint
from gateway.settings import StartRefused, read_sealing_secret
from gateway.state.backup import STORE_FILE
from gateway.state.manifest import AUDIT, KEY, SEALING, Kept, Manifest, kept
from gateway.store.base import HEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What is wrong with a backup, each a sentence; and what is to be said of its audit."""

    problems: tuple[str, ...]
    audit: tuple[ChainVerdict, ...]

    @property
    def broken(self) -> tuple[str, ...]:
        """Where the audit was not as it was written when the backup was made."""
        return tuple(each.broken for each in self.audit if each.broken)


def verify_backup(folder: Path, manifest: Manifest) -> Verified:
    """Every file against the manifest, every line of the audit against the heads in it."""
    problems = [*_files(folder, manifest)]
    if not problems:
        problems += [*_identities(folder, manifest), *_store(folder, manifest)]
        problems += _sealing(folder, manifest)
    if manifest.migration > HEAD:
        problems.append(
            f"{folder} was made by a later version of the gateway ({manifest.version}, migration"
            f" {manifest.migration}; this one knows {HEAD}): use that version"
        )
    return Verified(
        problems=tuple(problems), audit=() if problems else tuple(_audit(folder, manifest))
    )


def _files(folder: Path, manifest: Manifest) -> Iterator[str]:
    for each in manifest.files:
        path = folder / each.file
        if Path(realpath(path)) != Path(realpath(folder)) / each.file:
            yield f"{path} is a link, and no file of a backup"
            continue
        try:
            found = kept(each.kind, folder, path, Path(each.original))
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
        try:
            secret = read_sealing_secret(content_of(path.read_text("ascii")))
        except (OSError, ValueError):
            yield f"{path} holds no sealing secret"
            continue
        if manifest.sealing and not has_fingerprint(secret, manifest.sealing):
            yield f"{path} is not the sealing secret of the store"


def _audit(folder: Path, manifest: Manifest) -> Iterator[ChainVerdict]:
    keys: list[Kept] = [*manifest.of_kind(KEY)]
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
