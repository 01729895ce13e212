"""Restores a backup: puts back what is missing of its state, and overwrites nothing.

The store comes last, as no gateway starts on a state without one: after an interruption, restore
again. Afterwards the newer chains and deeds of the audit enter the store.
"""

import asyncio
import os
import pwd
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path

import msgspec

from gateway.administrators.log import DONE, FAILED, Deed, DeedLog
from gateway.audit import chains as audit_chains
from gateway.audit.chains import Chains, DayFile, Known, audit_folder, day_files
from gateway.audit.entries import DEED, DeedLine, key_file, read_line, read_secrets
from gateway.audit.verification import BrokenChain, Walk
from gateway.contract.fields import write_instant
from gateway.identity import UNDER_WAY, Account
from gateway.sealing import secret_file
from gateway.settings import Settings, StartRefused
from gateway.state import LOCK, make_folder, open_own_store, sole_use
from gateway.state import backup as backups
from gateway.state.backup import BackupFile, Manifest, copy_file
from gateway.state.integrity import StateParts, find_parts
from gateway.store import Store
from gateway.store.base import HEAD

# Every start refuses what was restored in part in this order: the key without the folder's name,
# which is the last file of the audit, and all parts without the store.
_ORDER = (backups.KEY, backups.AUDIT, backups.SEALING, backups.STORE)
# Where the store goes, None where one is kept; and the last day that was dropped of each chain of
# a kept store.
_Destination = tuple[Path | None, Mapping[str, date]]


def _targets(
    settings: Settings, manifest: Manifest, place: Path | None, dropped: Mapping[str, date]
) -> Iterator[tuple[BackupFile, Path]]:
    """Yields the files of the backup in order, and where each goes; dropped days are left out."""
    key, audit, secret = key_file(settings), audit_folder(settings), secret_file(settings)
    for file in manifest.of_kind(*_ORDER):
        name = file.file.name
        day, chain, *_ = [*name.split("."), ""]
        target = (key, audit / name, secret, place)[_ORDER.index(file.kind)]
        is_dropped = chain in dropped and day <= dropped[chain].isoformat()
        if target is not None and not is_dropped:
            yield file, target


def restore_configuration(folder: Path, manifest: Manifest, config: Path) -> list[Path]:
    """Puts back missing files beside `config`, which the operator named; returns their paths."""
    restored = []
    for file, target in configuration(manifest, config):
        if target is not None and not target.exists():
            if not target.parent.exists():
                target.parent.mkdir(mode=0o700, parents=True)
                _give(target.parent, _account(target.parent, manifest.owner))
            _put_back(folder / file.file, target, _account(target.parent, manifest.owner))
            restored.append(target)
    return restored


def configuration(manifest: Manifest, config: Path) -> Iterator[tuple[BackupFile, Path | None]]:
    """Yields its files and where each goes: None for one that lay in another folder."""
    own = manifest.configuration or Path()  # no absolute path lies below this one
    for file in manifest.of_kind(backups.CONFIGURATION):
        if file.original == own:
            yield file, config
        else:
            is_near = file.original.is_relative_to(own.parent)
            yield file, config.parent / file.original.relative_to(own.parent) if is_near else None


async def restore(settings: Settings, folder: Path, manifest: Manifest) -> list[Path]:
    """Puts back what is missing, and returns the files. Raises StoreError and OSError.

    A store of the same state is kept, as it is newer than the backup. Raises StartRefused where a
    gateway runs, or where there are parts of another state.
    """
    await _checked(settings, manifest)
    with sole_use(make_folder(settings.state), "a gateway", "stop it first"):
        # a gateway may have begun and ended in between
        place, dropped = await _checked(settings, manifest)
        state, audit = settings.state, audit_folder(settings)
        account = _account(state, manifest.owner)
        audit.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (state, audit, state / LOCK):
            _give(path, account)
        targets = _targets(settings, manifest, place, dropped)
        return [to for file, to in targets if _put_back(folder / file.file, to, account)]


async def _checked(settings: Settings, manifest: Manifest) -> _Destination:
    """Returns where the store goes; raises StartRefused where the backup must not go here."""
    async with aclosing(open_own_store(settings)) as store:
        place, dropped = await _check_place(settings, store, manifest)
    for file, target in _targets(settings, manifest, None, dropped):
        # an existing file is kept, so it must hold no less than the backup has
        if not target.exists():
            continue
        is_known = file.kind == backups.SEALING and bool(manifest.sealing)
        if is_known and not backups.is_secret(target, manifest.sealing):
            raise StartRefused(f"{target} is not the sealing secret of the backup: move it away")
        if file.kind == backups.AUDIT and target.stat().st_size < file.size:
            raise StartRefused(f"{target} is shorter than in the backup: move it away")
    return place, dropped


async def _check_place(settings: Settings, store: Store, manifest: Manifest) -> _Destination:
    parts = await find_parts(settings, store)
    foreign = [part for part in parts if part.identity not in (None, manifest.identity)]
    if foreign:
        named = " and ".join(f"{part} (state {part.identity})" for part in foreign)
        raise StartRefused(
            f"the backup is of the state {manifest.identity}, other parts are here: {named}; move"
            " them away, nothing is overwritten"
        )
    if not manifest.has_store:
        _check_dump(parts, manifest)
        return None, {}
    if parts.version is not None and parts.store.identity is not None:
        known = await Chains(store).known() if parts.version == HEAD else []
        return None, {chain.id: chain.dropped for chain in known if chain.dropped}
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
    return place, {}


def _check_dump(parts: StateParts, manifest: Manifest) -> None:
    """Raises StartRefused unless the right dump has been restored to the store's server."""
    part = parts.store
    if parts.version is None:
        problem = "not there: first"
    elif part.identity != manifest.identity:
        problem = f"of the state {part.identity}, not of the backup's:"
    elif parts.version < manifest.migration:
        problem = f"at migration {parts.version}:"
    else:
        return
    dump = f"{manifest.store}: {manifest.dump}"
    raise StartRefused(f"{part} is {problem} restore the dump of {dump}")


def _account(folder: Path, name: str) -> Account | None:
    """Returns who gets what root makes in a folder: its owner, or `name` where that is root."""
    if os.geteuid() != 0:
        return None
    status = folder.stat()
    if status.st_uid == 0 and name:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    return status.st_uid, status.st_gid


def _give(path: Path, account: Account | None) -> None:
    if account is not None and path.exists():
        os.chown(path, *account, follow_symlinks=False)


def _put_back(source: Path, target: Path, account: Account | None) -> bool:
    """Copies a file unless it exists, after removing cut-off copies; returns whether it did."""
    for path in target.parent.glob(f"{target.name}.*{UNDER_WAY}"):
        path.unlink(missing_ok=True)
    if target.exists():
        return False
    copy_file(source, target, account)
    return True


class _NumberedDeed(DeedLine, tag=DEED, tag_field="kind", rename="camel", kw_only=True):
    seq: int


_decode = msgspec.json.Decoder(_NumberedDeed).decode


async def read_newer_audit(
    settings: Settings, store: Store
) -> tuple[Sequence[Known], Sequence[Deed], Sequence[str]]:
    """Returns what the day files have beyond the store. Raises StoreError, OSError, StartRefused.

    These are the verified chains that it does not know, the deeds that it lacks, the oldest first,
    and for each unknown chain that is broken where that is.
    """
    folder = audit_folder(settings)
    every = await asyncio.to_thread(audit_chains.files_by_chain, folder)
    files = {chain: own for chain, own in every.items() if not audit_chains.is_open(own[-1].path)}
    known = {chain.id: chain for chain in await Chains(store).known()}
    last = await DeedLog(store).last(1)
    after = last[0].at if last else datetime.min.replace(tzinfo=UTC)
    secrets = read_secrets(key_file(settings)) if files else ()
    chains, broken, deeds = [], [], list[Deed]()
    for name, own in files.items():
        is_new, chain = name not in known, known.get(name) or _unknown(folder, own[0])
        walk = Walk(folder, chain, secrets)
        try:
            await asyncio.to_thread(walk.follow, own)
        except BrokenChain as error:
            broken += [str(error)] if is_new else []
            continue
        # ended deeds, in the verified lines after the head that the store knows
        for line in _deeds_in(own):
            is_unknown = chain.head.seq < line.seq <= walk.head.seq
            if is_unknown and (is_new or line.time > after) and line.result in (DONE, FAILED):
                same = {name: getattr(line, name) for name in ("who", "deed", "subject", "details")}
                deeds.append(Deed(at=line.time, outcome=line.result, **same))
        if is_new:
            chains.append(replace(chain, head=walk.head, ended=walk.ended))
    deeds.sort(key=lambda deed: deed.at)
    return chains, deeds, broken


def _unknown(folder: Path, file: DayFile) -> Known:
    """Returns a chain as it began: at the unverified time of its first line, else at midnight."""
    begun = datetime.combine(file.day, time(), UTC)
    with file.path.open("rb") as lines, suppress(ValueError):
        if first := read_line(lines.readline()):
            begun = datetime.fromisoformat(first.time)
    place, host = audit_chains.place_of(folder) or "", socket.gethostname()
    return Known(id=file.chain, place=place, host=host, begun=begun)


def deeds_since(folder: Path, moment: datetime, names: Mapping[str, str]) -> list[str]:
    """Returns a sentence on each deed on a key, the oldest first. Raises OSError."""
    files = [file for file in day_files(folder) if file.day >= moment.astimezone(UTC).date()]
    sentences = []
    for line in sorted(_deeds_in(files), key=lambda line: line.time):
        if line.result == DONE and line.time > moment and line.deed.startswith("key "):
            name = names.get(line.subject) or line.details.get("name")
            whom = f"{name} ({line.subject})" if name else line.subject
            deed = f"{line.deed} after the backup: {whom}"
            sentences.append(f"{deed}, by {line.who}, {write_instant(line.time)}")
    return sentences


def _deeds_in(files: Sequence[DayFile]) -> Iterator[_NumberedDeed]:
    """Yields the deeds in the files, unverified, without lines cut off. Raises OSError."""
    for file in files:
        with file.path.open("rb") as lines:
            for text in lines:
                if b'"kind":"deed"' in text[:64]:
                    with suppress(msgspec.MsgspecError, ValueError):
                        yield _decode(text)
