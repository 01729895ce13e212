"""Makes a backup of a state, beside a gateway that may run.

The store is copied first, then the files: so these know no less than it does.
"""

import asyncio
import pwd
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from gateway import __version__
from gateway.audit.chains import PLACE, Chains, Known, audit_folder, day_files, place_of
from gateway.audit.entries import key_file
from gateway.audit.verification import chains_in, elsewhere
from gateway.policy.cases.run import cases_beside
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import secret_file
from gateway.settings import Settings, StartRefused, shipped_policy
from gateway.state.check import check_parts
from gateway.state.copies import copy_file, copy_lines, new_folder
from gateway.state.folder import open_own_store
from gateway.state.manifest import (
    AUDIT,
    CONFIGURATION,
    KEY,
    SEALING,
    STORE,
    Kept,
    Manifest,
    kept,
    write,
)
from gateway.state.parts import Parts, find_parts
from gateway.store import Store, open_store

STORE_FILE = "gateway.db"
_NAMES = {SEALING: "sealing.secret", KEY: "audit.key"}


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


def _check_sources(settings: Settings, config: Path | None, parts: Parts) -> None:
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
) -> tuple[Sequence[Known], Sequence[Kept]]:
    """The chains that the copied store knows, and all that was copied, the store first."""
    before = await asyncio.to_thread(chains_in, audit_folder(settings))
    has_copy = await store.copy_to(folder / STORE_FILE)
    chains = await _chains(settings, store, folder / STORE_FILE if has_copy else None)
    wanted = {*before, *(each.id for each in chains)}
    stored = [_stored(folder, store)] if has_copy else []
    return chains, [*stored, *await asyncio.to_thread(_files, settings, config, folder, wanted)]


def _begun(parts: Parts) -> tuple[str, str]:
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


def _stored(folder: Path, store: Store) -> Kept:
    return kept(STORE, folder, folder / STORE_FILE, Path(store.place).absolute())


def _files(
    settings: Settings, config: Path | None, folder: Path, wanted: set[str]
) -> Sequence[Kept]:
    """All but the store."""
    return [
        *_audit(audit_folder(settings), folder, wanted),
        *_single(KEY, key_file(settings), folder),
        *_single(SEALING, secret_file(settings), folder),
        *_configuration(settings, config, folder),
    ]


def _audit(source: Path, folder: Path, wanted: set[str]) -> Iterator[Kept]:
    """The day files of these chains, and then the folder's name; whole lines alone."""
    new_folder(folder / AUDIT)
    for each in day_files(source):
        if each.chain not in wanted:
            continue  # its process has begun just now: the copied store does not know it
        try:
            copy_lines(each.path, folder / AUDIT / each.path.name)
        except FileNotFoundError as error:
            raise StartRefused(
                f"{each.path} was old and has just been dropped: back up again, into another folder"
            ) from error
        yield kept(AUDIT, folder, folder / AUDIT / each.path.name, each.path)
    if (source / PLACE).exists():
        copy_file(source / PLACE, folder / AUDIT / PLACE)
        yield kept(AUDIT, folder, folder / AUDIT / PLACE, source / PLACE)


def _single(kind: str, path: Path | None, folder: Path) -> Iterator[Kept]:
    if path is not None and path.exists():
        name = _NAMES[kind]
        copy_file(path, folder / name)
        yield kept(kind, folder, folder / name, path)


def _configuration(settings: Settings, config: Path | None, folder: Path) -> Iterator[Kept]:
    """The configuration's file, and those that it names, with the cases beside the policy."""
    own, mapping, policy = _named(settings, config)
    found = [own, mapping, policy, policy and cases_beside(policy)]
    new_folder(folder / CONFIGURATION)
    for number, path in enumerate(found, 1):
        if path is not None and path.is_file():
            target = folder / CONFIGURATION / f"{number}-{path.name}"
            copy_file(path, target)
            yield kept(CONFIGURATION, folder, target, path)


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
