"""`clinic-gateway state`: backs up, checks and restores the gateway's state, and its clock."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from gateway.administrators.log import DeedLog
from gateway.audit.chains import Chains, audit_folder
from gateway.background import JUMP
from gateway.cli.audit import unread
from gateway.cli.command import CommandGroup, Run, now, option, recording
from gateway.cli.output import fail, members, plain, say
from gateway.cli.values import FLAG, FOLDER
from gateway.contract.fields import write_instant
from gateway.events import counted
from gateway.identity import reason_of
from gateway.inquiries.audit import verify_audit
from gateway.keys.store import KeyStore, OddTime
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import sealing_secret
from gateway.settings import Settings, StartRefused, configuration_file, load_settings
from gateway.state import backup, open_own_store, opened, restore
from gateway.state.backup import Manifest, StateCheck, read_manifest, verify_backup
from gateway.state.integrity import StateParts, checked_parts
from gateway.store import Store
from gateway.store.base import HEAD


@click.group(cls=CommandGroup)
def state() -> None:
    """Back up the gateway's own state, check that it is one thing, and put it back."""


@state.command("backup")
@click.argument("folder", metavar="DIR", type=FOLDER)
def back_up(run: Run, folder: Path) -> None:
    """Back up the state into DIR, a new folder, and verify the backup.

    It holds the store, the audit, both secrets and the configuration: keep it as safe as these.
    Exits with 1 where it cannot be made, or where its audit is not as it was written.
    """
    settings, config = run.own_settings, configuration_file(run.config)
    try:
        manifest = asyncio.run(backup.back_up(settings, config, folder, now()))
    except OSError as error:
        place = error.filename or folder
        fail(f"the backup in {folder} cannot be made: {reason_of(error)} ({place}); remove it")
    _say_verified(run, verify_backup(folder, manifest), *_described(folder, manifest))


@state.command()
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER)
def check(run: Run, folder: Path | None) -> None:
    """Check the state, or the backup in DIR; exit 1 where it is not whole, or of several states.

    A gateway may run meanwhile. Nothing is written.
    """
    if folder is not None:
        manifest = read_manifest(folder)
        verified = verify_backup(folder, manifest)
        data, lines = _described(folder, manifest)
        data["problems"] = verified.problems
    else:
        parts, verified = asyncio.run(_checked(run.own_settings))
        data = {"identity": parts.identity, "migration": parts.version, "store": parts.store.place}
        identity = f"identity {parts.identity}" if parts.identity else "no identity yet"
        lines = [f"{parts.store}: {identity}", f"  migration {parts.version}"]
    verdict = "in order"
    if verified.problems:
        verdict = f"NOT USABLE: {counted(len(verified.problems), 'problem')}"
    elif verified.broken:
        places = counted(len(verified.broken), "place")
        verdict = f"BROKEN: {places} of the audit not as written"
    _say_verified(run, verified, data, [verdict, *lines])


async def _checked(settings: Settings) -> tuple[StateParts, StateCheck]:
    """Returns the parts of the state and its audit. Raises StartRefused and StoreError."""
    async with aclosing(open_own_store(settings)) as store:
        parts = await checked_parts(settings, store)
        if parts.version is None:
            fail(f"no state has begun: {parts.store} is not there")
        if parts.version != HEAD:
            fail(
                f"{parts.store} is at migration {parts.version}, this version of the gateway works"
                f" with {HEAD}: where that is the later one, the next start brings it there"
            )
        if await store.meta(FINGERPRINT) is not None:
            await sealing_secret(settings, store)  # raises where it is another one
        # raises for an unreadable time: keys end by the latest one
        await KeyStore(store).latest_time()
        try:
            verdicts = (await verify_audit(settings, store)).verdicts
        except OSError as error:
            raise StartRefused(unread(audit_folder(settings), error)) from error
    return parts, StateCheck(problems=(), audit=tuple(verdicts))


@state.command()
@option("--accept", FLAG, "This machine's clock is right: forget later times than its.")
async def clock(run: Run, accept: bool) -> None:
    """Print this machine's time, and the latest that this state has seen; keys end by the later.

    With --accept the keys are named that are valid again by it; where the latest time cannot be
    read, nobody can tell which these are. Running gateways take it within a minute.
    """
    at, revived = now(), []
    async with run.store() as store:
        keys = KeyStore(store)
        try:
            latest = await keys.latest_time()
            seen = latest and write_instant(latest)
        except OddTime:
            if not accept:
                raise
            latest, seen = None, "no time"
            say("the latest time seen could not be read: look through `keys list`", err=True)
        if accept:
            if latest is not None:
                listed = [key for key, _ in (await keys.list()).keys]
                revived = [key for key in listed if key.active(at) and not key.active(latest)]
            details = {"seen": seen, "revived": [key.id for key in revived]}
            async with run.deed(store, "clock accepted", write_instant(at), **details):
                await keys.accept_time(at)
    behind = int((latest - at).total_seconds()) if latest else 0
    verdict = f"{'accepted' if accept else 'in order'}: keys end by this machine's clock"
    if behind > JUMP and not accept:
        verdict = (
            f"the clock is {timedelta(seconds=behind)} behind: keys end by the latest time seen."
            " Set the clock; if it is right, run `clinic-gateway state clock --accept`"
        )
    lines = [
        f"this machine's clock: {plain(at)}",
        f"the latest time seen: {plain(latest)}",
        verdict,
        *(f"valid again: {key.name} ({key.id})" for key in revived),
    ]
    data = {"clock": at, "latest": latest, "accepted": accept}
    run.say(data | {"revived": [key.id for key in revived]}, lines)


@state.command("restore")
@click.argument("folder", metavar="DIR", type=FOLDER)
def restore_state(run: Run, folder: Path) -> None:
    """Verify the backup in DIR, and put back what is missing of its state.

    Nothing is overwritten: a store of the same state that is there is kept. Where parts of another
    state are there, or a gateway runs, it is refused. Files of the configuration that are missing
    are put back too, into the folder of --config. If a restore was interrupted, run the command
    again.
    """
    manifest = read_manifest(folder)
    verified = verify_backup(folder, manifest)
    if verified.problems:
        _end_if_wrong(verified)
    named = configuration_file(run.config)
    place = named and named.absolute()
    if place is None and manifest.configuration is not None:
        fail(
            "there is no gateway.yaml here: name where the configuration goes, such as --config"
            f" {manifest.configuration}"
        )
    try:
        files, keeps_store, notes = asyncio.run(_restored(folder, manifest, place))
    except OSError as error:
        at = error.filename or folder
        fail(f"{at} cannot be put back: {reason_of(error)}; mend that and restore again")
    # files of the configuration that were in other folders, and are missing there
    missing = [
        f"{kept.original} is missing: copy it from {folder / kept.file}"
        for kept, target in (restore.configuration(manifest, place) if place else ())
        if target is None and not kept.original.exists()
    ]
    notes = [*missing, *notes]
    data, lines = _described(folder, manifest)
    data |= {"restored": list(map(str, files)), "storeKept": keeps_store}
    data |= {"notes": notes, "broken": verified.broken}
    put_back = f"  {counted(len(files), 'file')} put back; nothing was overwritten"
    more = (f"note: {note}" for note in (*notes, *verified.broken))
    run.say(data, [*lines, put_back, *more])


async def _restored(
    folder: Path, manifest: Manifest, place: Path | None
) -> tuple[Sequence[Path], bool, Sequence[str]]:
    """Returns the files that were put back, whether the store there was kept, and notes."""
    settings, files = await _put_back(folder, manifest, place)
    async with opened(settings) as store:
        keeps_store = manifest.has_store and Path(store.place) not in files
        chains, deeds, broken = await restore.read_newer_audit(settings, store)
        if keeps_store and not files and not chains:
            fail(
                f"there is a state in {settings.state} already, of the backup's identity, and no"
                " part of it is missing: nothing was put back"
            )
        notes = [
            *await _store_notes(settings, store, manifest, is_kept=keeps_store),
            *(f"this is not entered into the store: {where}" for where in broken),
        ]
        details = {"backup": write_instant(manifest.made_at), "files": len(files)}
        details["chains"] = [chain.id for chain in chains]
        async with (
            recording(settings, store) as deed,
            deed("state restored", manifest.identity, **details),
            store.begin() as connection,
        ):
            await Chains.enter(connection, chains)
            for done in deeds:
                await DeedLog.enter(connection, done)
    return files, keeps_store, notes


async def _put_back(
    folder: Path, manifest: Manifest, place: Path | None
) -> tuple[Settings, list[Path]]:
    """Returns the settings and the files that were put back; undoes a restore that is refused."""
    is_gone = place is not None and not place.exists()
    files = restore.restore_configuration(folder, manifest, place) if place and is_gone else []
    try:
        settings = load_settings(place)
        files += await restore.restore(settings, folder, manifest)
    except StartRefused:
        for file in files:
            file.unlink()
        raise
    if place and not is_gone:
        files += restore.restore_configuration(folder, manifest, place)
    return settings, files


async def _store_notes(
    settings: Settings, store: Store, manifest: Manifest, *, is_kept: bool
) -> Sequence[str]:
    """Returns what the kept store knows beyond the backup, or the restored one has forgotten."""
    if is_kept:
        return ["the store that is here is kept, with its keys and bookings since the backup"]
    at = write_instant(manifest.made_at)
    names = {key.id: key.name for key, _ in (await KeyStore(store).list()).keys}
    return [
        f"keys that were revoked after {at} work again, and keys that were made since do not: look"
        " through `clinic-gateway keys list` before partners call",
        f"bookings after {at} are forgotten here and stand in the practice system: a partner that"
        " repeats one is told 409",
        *restore.deeds_since(audit_folder(settings), manifest.made_at, names),
    ]


def _described(folder: Path, manifest: Manifest) -> tuple[dict[str, Any], list[str]]:
    """Returns what is in a backup, as JSON members and in lines."""
    size = sum(file.size for file in manifest.files)
    data = {
        **members(manifest, "identity", "store", "migration"),
        "folder": str(folder),
        "madeAt": manifest.made_at,
        "storeInBackup": manifest.has_store,
        "sealing": manifest.sealing or None,
        "files": len(manifest.files),
        "bytes": size,
    }
    files = counted(len(manifest.files), "file")
    lines = [
        f"{folder}: the state {manifest.identity} as of {plain(manifest.made_at)}",
        f"  migration {manifest.migration}, {files}, {counted(size, 'byte')}",
    ]
    if not manifest.has_store:
        dump = f"dump it with pg_dump; {manifest.dump}"
        lines.append(f"  without the store ({manifest.store}): {dump}")
    return data, lines


def _say_verified(
    run: Run, verified: StateCheck, data: dict[str, Any], lines: Iterable[str]
) -> None:
    """Prints these and the result of the audit; ends the command where something is wrong."""
    audit, line = None, "not checked"  # its files are damaged
    if not verified.problems:
        count = sum(verdict.lines for verdict in verified.audit)
        chains, broken = len(verified.audit), verified.broken
        audit = {"chains": chains, "lines": count, "broken": broken}
        line = (
            f"{counted(chains, 'chain')}, {counted(count, 'line')}, {len(broken) or 'none'} broken"
        )
    run.say(data | {"audit": audit}, [*lines, f"  audit: {line}"])
    _end_if_wrong(verified)


def _end_if_wrong(verified: StateCheck) -> None:
    """Prints what is wrong on stderr and exits with 1, if anything is wrong."""
    say(*verified.problems, *(f"BROKEN: {place}" for place in verified.broken), err=True)
    if verified.problems or verified.broken:
        raise click.exceptions.Exit(1)
