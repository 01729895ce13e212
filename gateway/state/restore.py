"""Puts a backup back: what is missing of its state, and nothing over what is there.

The store comes last: what is put back half way has none, and no gateway begins on that. To go on,
restore again.
"""

import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from gateway.audit.chains import PLACE, Chains, audit_folder
from gateway.audit.entries import key_file
from gateway.identity import META, content_of
from gateway.sealing import has_fingerprint, secret_file
from gateway.settings import Settings, StartRefused, read_sealing_secret
from gateway.state.copies import Account, copy_file, tidy
from gateway.state.folder import LOCK, make_folder, open_own_store, sole_use
from gateway.state.manifest import AUDIT, CONFIGURATION, KEY, SEALING, STORE, Kept, Manifest
from gateway.state.parts import Part, Parts, find_parts
from gateway.state.verified import store_told
from gateway.store import Store
from gateway.store.base import HEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a restore finds: where the store goes; None where it is there, and is kept.

    `dropped` are the last days that a store that is kept has dropped of its audit, by chain.
    """

    place: Path | None
    dropped: Mapping[str, date] = field(default_factory=dict)

    def has_dropped(self, name: str) -> bool:
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
    for each, target in _configuration(manifest, config):
        if target is not None and not target.exists():
            _make(target.parent, manifest.owner)
            tidy(target.parent)
            copy_file(folder / each.file, target, _account(target.parent, manifest.owner))
            restored.append(target)
    return restored


def left_out(manifest: Manifest, config: Path) -> Iterator[Kept]:
    """The files of the configuration that lay elsewhere, and are the operator's to put back."""
    yield from (each for each, target in _configuration(manifest, config) if target is None)


def _configuration(manifest: Manifest, config: Path) -> Iterator[tuple[Kept, Path | None]]:
    own = manifest.configuration
    for each in manifest.of_kind(CONFIGURATION):
        original = Path(each.original)
        if original == own:
            yield each, config
        elif own is not None and original.is_relative_to(own.parent):
            yield each, config.parent / original.relative_to(own.parent)
        else:
            yield each, None


async def restore(settings: Settings, folder: Path, manifest: Manifest) -> list[Path]:
    """Put back what is missing; which files. StartRefused, StoreError, OSError.

    A store of the backup's state that is there is kept, as it is newer: what else is missing is
    put back to it. StartRefused where a gateway runs, or where there are parts of another state.
    """
    await _checked(settings, manifest)
    with sole_use(make_folder(settings.state), "a gateway", "stop it first"):
        # a gateway may have begun in between, and have ended
        found = await _checked(settings, manifest)
        return [*_put_back(settings, folder, manifest, found)]


def _put_back(settings: Settings, folder: Path, manifest: Manifest, found: Found) -> Iterator[Path]:
    state, audit = settings.state, audit_folder(settings)
    account = _account(state, manifest.owner)
    audit.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in (state, audit, state / LOCK):
        _give(path, account)
    for each, target in _targets(settings, manifest, found):
        tidy(target.parent)
        if not target.exists():
            copy_file(folder / each.file, target, account)
            yield target


def _targets(settings: Settings, manifest: Manifest, found: Found) -> Iterator[tuple[Kept, Path]]:
    """Each file and where it goes, in the order in which no half of them is a whole state.

    The key without the folder's name, the store without its secret, and all without the store are
    refused by every start.
    """
    audit = audit_folder(settings)
    key, secret = key_file(settings), secret_file(settings)
    named = [each for each in manifest.of_kind(AUDIT) if Path(each.file).name == PLACE]
    yield from ((each, key) for each in manifest.of_kind(KEY))
    for each in manifest.of_kind(AUDIT):
        if each not in named and not found.has_dropped(Path(each.file).name):
            yield each, audit / Path(each.file).name
    yield from ((each, audit / PLACE) for each in named)
    if secret is not None:
        yield from ((each, secret) for each in manifest.of_kind(SEALING))
    if found.place is not None:
        yield from ((each, found.place) for each in manifest.of_kind(STORE))


async def _checked(settings: Settings, manifest: Manifest) -> Found:
    """What is there; StartRefused where the backup must not go here."""
    store = open_own_store(settings)
    try:
        found = await _check_place(settings, store, manifest)
    finally:
        await store.aclose()
    for each, target in _targets(settings, manifest, replace(found, place=None)):
        _check_kept(each, target, manifest)
    return found


def _check_kept(file: Kept, target: Path, manifest: Manifest) -> None:
    """What is there already stays: it must be no less than what the backup has."""
    if not target.exists():
        return
    is_known = file.kind == SEALING and bool(manifest.sealing)
    if is_known and not _is_secret(target, manifest.sealing):
        raise StartRefused(f"{target} is not the sealing secret of the backup: move it away")
    if file.kind == AUDIT and target.stat().st_size < file.size:
        raise StartRefused(f"{target} is shorter than in the backup: move it away")


def _is_secret(path: Path, fingerprint: str) -> bool:
    try:
        secret = read_sealing_secret(content_of(path.read_text("ascii")))
    except (OSError, ValueError):
        return False
    return has_fingerprint(secret, fingerprint)


async def _check_place(settings: Settings, store: Store, manifest: Manifest) -> Found:
    parts = await find_parts(settings, store)
    _check_own(parts, manifest)
    if not manifest.has_store:
        await _check_dump(parts.store, store, manifest)
        return Found(place=None)
    if parts.version is not None and parts.store.identity is not None:
        known = await Chains(store).known() if parts.version == HEAD else []
        return Found(place=None, dropped={each.id: each.dropped for each in known if each.dropped})
    _check_no_store(settings, store)
    return Found(place=Path(store.place))


def _check_own(parts: Parts, manifest: Manifest) -> None:
    """StartRefused where there are parts of other states; all are named."""
    foreign = [each for each in parts if each.identity not in (None, manifest.identity)]
    if foreign:
        told = " and ".join(f"{each} (state {each.identity})" for each in foreign)
        raise StartRefused(
            f"the backup is of the state {manifest.identity}, other parts are here: {told}; move"
            " them away, nothing is overwritten"
        )


def _check_no_store(settings: Settings, store: Store) -> None:
    place = Path(store.place)
    left = [path for end in ("", "-wal", "-shm") if (path := Path(f"{place}{end}")).exists()]
    if store.engine.dialect.name != "sqlite":
        raise StartRefused(
            f"the backup's store is a file, the configuration names {store.place}: name its own"
            " configuration with --config"
        )
    if left:
        names = " and ".join(map(str, left))
        raise StartRefused(
            f"there is a state in {settings.state} already: nothing is overwritten; move"
            f" {names} away first"
        )


async def _check_dump(part: Part, store: Store, manifest: Manifest) -> None:
    """Its server's dump has been put back, and it is the right one."""
    if not part.is_there:
        raise StartRefused(f"{part} is not there: first restore the dump of {store_told(manifest)}")
    if part.identity != manifest.identity or await store.meta(META) is None:
        raise StartRefused(
            f"{part} is of the state {part.identity}, not of the backup's: restore the dump of"
            f" {store_told(manifest)}"
        )
    version = await store.version() or ""
    if version < manifest.migration:
        raise StartRefused(
            f"{part} is at migration {version}: restore the dump of {store_told(manifest)}"
        )


def _account(folder: Path, name: str) -> Account | None:
    """To whom root gives what it makes there: the folder's owner, else whose the state was."""
    if os.geteuid() != 0:
        return None
    found = folder.stat()
    if found.st_uid != 0 or not name:
        return found.st_uid, found.st_gid
    try:
        known = pwd.getpwnam(name)
    except KeyError:
        return found.st_uid, found.st_gid
    return known.pw_uid, known.pw_gid


def _make(folder: Path, owner: str) -> None:
    if not folder.exists():
        folder.mkdir(mode=0o700, parents=True)
        _give(folder, _account(folder, owner))


def _give(path: Path, account: Account | None) -> None:
    if account is not None and path.exists():
        os.chown(path, *account, follow_symlinks=False)
