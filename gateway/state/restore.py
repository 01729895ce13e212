"""Puts a backup back: what is missing of its state, and nothing over what is there.

The store comes last: what is put back half way has none, and no gateway begins on that. To go on,
restore again.
"""

import os
import pwd
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from gateway.audit.chains import PLACE, Chains, audit_folder
from gateway.audit.entries import key_file
from gateway.identity import META
from gateway.sealing import secret_file
from gateway.settings import Settings, StartRefused
from gateway.state import LOCK, make_folder, open_own_store, sole_use
from gateway.state.backup import dump_told
from gateway.state.manifest import (
    AUDIT,
    CONFIGURATION,
    KEY,
    SEALING,
    STORE,
    Account,
    BackupFile,
    Manifest,
    copy_file,
    is_secret,
    tidy,
)
from gateway.state.parts import StatePart, find_parts
from gateway.store import Store
from gateway.store.base import HEAD

# The order in which no half of the parts is a whole state: the key without the folder's name, the
# store without its secret, and all without the store are refused by every start.
_ORDER = (KEY, AUDIT, PLACE, SEALING, STORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """What a restore finds: where the store goes; None where it is there, and is kept.

    `dropped` are the last days that a store that is kept has dropped of its audit, by chain.
    """

    place: Path | None
    dropped: Mapping[str, date] = field(default_factory=dict)

    def targets(self, settings: Settings, manifest: Manifest) -> Iterator[tuple[BackupFile, Path]]:
        """Each file of the backup and where it goes, in order; none for a day that was dropped."""
        places = {KEY: key_file(settings), SEALING: secret_file(settings), STORE: self.place}
        names = {file: Path(file.file).name for file in manifest.of_kind(*_ORDER)}
        parts = {file: PLACE if name == PLACE else file.kind for file, name in names.items()}
        for file in sorted(names, key=lambda file: _ORDER.index(parts[file])):
            place = places.get(file.kind, audit_folder(settings) / names[file])
            if place is not None and not self._has_dropped(names[file]):
                yield file, place

    def _has_dropped(self, name: str) -> bool:
        """Whether a day file of that name went since it was old."""
        day, chain, *_ = [*name.split("."), ""]
        last = self.dropped.get(chain)
        return last is not None and day <= last.isoformat()


def restore_configuration(folder: Path, manifest: Manifest, config: Path) -> list[Path]:
    """Put back what is missing of the configuration that lay in one folder; which. OSError.

    It goes into the folder of `config`, which the operator names: a manifest alone says of no file
    where it is written.
    """
    restored = []
    for file, target in _configuration(manifest, config):
        if target is not None and not target.exists():
            if not target.parent.exists():
                target.parent.mkdir(mode=0o700, parents=True)
                _give(target.parent, _account(target.parent, manifest.owner))
            tidy(target.parent)
            copy_file(folder / file.file, target, _account(target.parent, manifest.owner))
            restored.append(target)
    return restored


def left_out(manifest: Manifest, config: Path) -> Iterator[BackupFile]:
    """The files of the configuration that lay elsewhere, and are the operator's to put back."""
    yield from (file for file, target in _configuration(manifest, config) if target is None)


def _configuration(manifest: Manifest, config: Path) -> Iterator[tuple[BackupFile, Path | None]]:
    own = manifest.configuration
    for file in manifest.of_kind(CONFIGURATION):
        original = Path(file.original)
        if original == own:
            yield file, config
        elif own is not None and original.is_relative_to(own.parent):
            yield file, config.parent / original.relative_to(own.parent)
        else:
            yield file, None


async def restore(settings: Settings, folder: Path, manifest: Manifest) -> list[Path]:
    """Put back what is missing; which files. StartRefused, StoreError, OSError.

    A store of the backup's state that is there is kept, as it is newer: what else is missing is
    put back to it. StartRefused where a gateway runs, or where there are parts of another state.
    """
    await _checked(settings, manifest)
    with sole_use(make_folder(settings.state), "a gateway", "stop it first"):
        # a gateway may have begun in between, and have ended
        destination = await _checked(settings, manifest)
        state, audit = settings.state, audit_folder(settings)
        account = _account(state, manifest.owner)
        audit.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (state, audit, state / LOCK):
            _give(path, account)
        restored = []
        for file, target in destination.targets(settings, manifest):
            tidy(target.parent)
            if not target.exists():
                copy_file(folder / file.file, target, account)
                restored.append(target)
        return restored


async def _checked(settings: Settings, manifest: Manifest) -> Destination:
    """What is there; StartRefused where the backup must not go here."""
    store = open_own_store(settings)
    try:
        found = await _check_place(settings, store, manifest)
    finally:
        await store.aclose()
    for file, target in replace(found, place=None).targets(settings, manifest):
        # what is there already stays: it must be no less than what the backup has
        if not target.exists():
            continue
        is_known = file.kind == SEALING and bool(manifest.sealing)
        if is_known and not is_secret(target, manifest.sealing):
            raise StartRefused(f"{target} is not the sealing secret of the backup: move it away")
        if file.kind == AUDIT and target.stat().st_size < file.size:
            raise StartRefused(f"{target} is shorter than in the backup: move it away")
    return found


async def _check_place(settings: Settings, store: Store, manifest: Manifest) -> Destination:
    parts = await find_parts(settings, store)
    foreign = [part for part in parts if part.identity not in (None, manifest.identity)]
    if foreign:
        named = " and ".join(f"{part} (state {part.identity})" for part in foreign)
        raise StartRefused(
            f"the backup is of the state {manifest.identity}, other parts are here: {named}; move"
            " them away, nothing is overwritten"
        )
    if not manifest.has_store:
        await _check_dump(parts.store, store, manifest)
        return Destination(place=None)
    if parts.version is not None and parts.store.identity is not None:
        known = await Chains(store).known() if parts.version == HEAD else []
        dropped = {chain.id: chain.dropped for chain in known if chain.dropped}
        return Destination(place=None, dropped=dropped)
    if store.engine.dialect.name != "sqlite":
        raise StartRefused(
            f"the backup's store is a file, the configuration names {store.place}: name its own"
            " configuration with --config"
        )
    place = Path(store.place)
    left = [path for end in ("", "-wal", "-shm") if (path := Path(f"{place}{end}")).exists()]
    if left:
        raise StartRefused(
            f"there is a state in {settings.state} already: nothing is overwritten; move"
            f" {' and '.join(map(str, left))} away first"
        )
    return Destination(place=place)


async def _check_dump(part: StatePart, store: Store, manifest: Manifest) -> None:
    """Its server's dump has been put back, and it is the right one."""
    version, problem = await store.version() or "", ""
    if not part.is_there:
        problem = "not there: first"
    elif part.identity != manifest.identity or await store.meta(META) is None:
        problem = f"of the state {part.identity}, not of the backup's:"
    elif version < manifest.migration:
        problem = f"at migration {version}:"
    if problem:
        dump = f"{manifest.store}: {dump_told(manifest)}"
        raise StartRefused(f"{part} is {problem} restore the dump of {dump}")


def _account(folder: Path, name: str) -> Account | None:
    """To whom root gives what it makes there: the folder's owner, else whose the state was."""
    if os.geteuid() != 0:
        return None
    found = folder.stat()
    if found.st_uid == 0 and name:
        with suppress(KeyError):
            known = pwd.getpwnam(name)
            return known.pw_uid, known.pw_gid
    return found.st_uid, found.st_gid


def _give(path: Path, account: Account | None) -> None:
    if account is not None and path.exists():
        os.chown(path, *account, follow_symlinks=False)
