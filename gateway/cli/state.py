"""`clinic-gateway state`: the gateway's own state, backed up, checked, and its clock."""

import asyncio
import errno
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from gateway.audit.chains import audit_folder
from gateway.cli.audit.access import unread
from gateway.cli.deeds import RecordDeed, now, with_deeds, with_store
from gateway.cli.lines import counted, legible, say
from gateway.cli.options import CommandGroup, config_option, fail, shared_options
from gateway.contract.fields import write_instant
from gateway.inquiries.verification import verify_audit
from gateway.keys.key import Key
from gateway.keys.latest import JUMP
from gateway.keys.store import KeyStore
from gateway.keys.told import OddTime
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import has_fingerprint, read_secret
from gateway.settings import (
    Settings,
    StartRefused,
    check_own_place,
    configuration_file,
    load_settings,
)
from gateway.state.backup import back_up
from gateway.state.check import check_parts
from gateway.state.folder import open_own_store
from gateway.state.manifest import Manifest, read
from gateway.state.parts import Parts, find_parts
from gateway.state.verified import Verified, dump_told, verify_backup
from gateway.store import Store
from gateway.store.base import HEAD

_FOLDER = click.Path(file_okay=False, path_type=Path)
folder_argument = click.argument("folder", metavar="DIR", type=_FOLDER)


@click.group(cls=CommandGroup, loads={"restore": "gateway.cli.restore:restore_state"})
@config_option
def state(config: Path | None) -> None:
    """Back up the gateway's own state, check that it is one thing, and put it back."""


@state.command()
@folder_argument
@shared_options
def backup(folder: Path, config: Path | None, as_json: bool) -> None:
    """Back up the state into DIR, a new folder, and verify the backup.

    It holds the store, the audit, both secrets and the configuration: keep it as safe as these.
    Exits with 1 where it cannot be made, or where its audit is not as it was written.
    """
    check_own_place(config)
    settings = load_settings(config)
    try:
        manifest = asyncio.run(back_up(settings, configuration_file(config), folder, now()))
    except OSError as error:
        place = error.filename or folder
        fail(f"the backup in {folder} cannot be made: {reason_of(error)} ({place}); remove it")
    verified = verify_backup(folder, manifest)
    data = manifest_data(folder, manifest) | {"audit": _audit_data(verified)}
    say(data, [*manifest_lines(folder, manifest), _audit_line(verified)], as_json=as_json)
    end_if_wrong(verified)


@state.command()
@click.argument("folder", metavar="[DIR]", required=False, type=_FOLDER)
@shared_options
def check(folder: Path | None, config: Path | None, as_json: bool) -> None:
    """Check the state, or the backup in DIR; exit 1 where it is not whole, or of several states.

    A gateway may run meanwhile. Nothing is written.
    """
    data: dict[str, Any]
    if folder is not None:
        manifest = read(folder)
        verified = verify_backup(folder, manifest)
        data = manifest_data(folder, manifest) | {"problems": verified.problems}
        lines = list(manifest_lines(folder, manifest))
    else:
        check_own_place(config)
        parts, verified = asyncio.run(_checked(load_settings(config)))
        data = {"identity": parts.identity, "migration": parts.version, "store": parts.store.place}
        identity = f"identity {parts.identity}" if parts.identity else "no identity yet"
        lines = [f"{parts.store}: {identity}", f"  migration {parts.version}"]
    data["audit"] = _audit_data(verified)
    say(data, [_verdict_line(verified), *lines, _audit_line(verified)], as_json=as_json)
    end_if_wrong(verified)


async def _checked(settings: Settings) -> tuple[Parts, Verified]:
    """The parts of the state that is there, and its audit. StartRefused, StoreError."""
    store = open_own_store(settings)
    try:
        parts = await find_parts(settings, store)
        check_parts(parts)
        if parts.version != HEAD:
            fail(_other_version(parts))
        await _check_secret(settings, store)
        # raises where it is no time: keys end by it
        await KeyStore(store).latest_time()
        try:
            verdicts = (await verify_audit(settings, store)).verdicts
        except OSError as error:
            raise StartRefused(unread(audit_folder(settings), error)) from error
    finally:
        await store.aclose()
    return parts, Verified(problems=(), audit=tuple(verdicts))


def _other_version(parts: Parts) -> str:
    if parts.version is None:
        return f"no state has begun: {parts.store} is not there"
    return (
        f"{parts.store} is at migration {parts.version}, this version of the gateway works with"
        f" {HEAD}: where that is the later one, the next start brings it there"
    )


async def _check_secret(settings: Settings, store: Store) -> None:
    """StartRefused where public ids were made with another secret."""
    known = await store.meta(FINGERPRINT)
    if known is not None and not has_fingerprint(read_secret(settings), known):
        raise StartRefused(
            f"the sealing secret is not the one with which the public ids of {store.place} were"
            " made: give the former one in backend.secret or backend.secret_file"
        )


@state.command()
@click.option(
    "--accept", is_flag=True, help="This machine's clock is right: forget later times than its."
)
@shared_options
def clock(accept: bool, config: Path | None, as_json: bool) -> None:
    """Print this machine's time, and the latest that this state has seen; keys end by the later.

    With --accept the keys are named that are valid again by it; where the latest time cannot be
    read, nobody can tell which these are. Running gateways take it within a minute.
    """
    at = now()

    async def seen(store: Store) -> datetime | None:
        return await KeyStore(store).latest_time()

    async def accepted(store: Store, deed: RecordDeed) -> tuple[datetime | None, list[Key]]:
        keys = KeyStore(store)
        try:
            latest = await seen(store)
            text = latest and write_instant(latest)
        except OddTime:
            latest, text = None, "no time"
            click.echo("the latest time seen could not be read: look through `keys list`", err=True)
        revived = [key for key, _ in (await keys.list()).keys if _is_revived(key, at, latest)]
        ids = [key.id for key in revived]
        async with deed("clock accepted", write_instant(at), seen=text, revived=ids):
            await keys.accept_time(at)
        return latest, revived

    latest, revived = with_deeds(config, accepted) if accept else (with_store(config, seen), [])
    data = {"clock": write_instant(at), "latest": latest and write_instant(latest)}
    lines = [
        f"this machine's clock: {data['clock']}",
        f"the latest time seen: {data['latest'] or 'none'}",
        _clock_verdict(at, latest, is_accepted=accept),
        *(f"valid again: {key.name} ({key.id})" for key in revived),
    ]
    ids = [key.id for key in revived]
    say(data | {"accepted": accept, "revived": ids}, lines, as_json=as_json)


def _is_revived(key: Key, at: datetime, latest: datetime | None) -> bool:
    return latest is not None and key.active(at) and not key.active(latest)


def _clock_verdict(at: datetime, latest: datetime | None, *, is_accepted: bool) -> str:
    if is_accepted:
        return "accepted: keys end by this machine's clock"
    behind = int((latest - at).total_seconds()) if latest else 0
    if behind <= JUMP:
        return "in order: keys end by this machine's clock"
    return (
        f"the clock is {timedelta(seconds=behind)} behind: keys end by the latest time seen. Set"
        " the clock; if it is right, run `clinic-gateway state clock --accept`"
    )


def manifest_data(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """The backup in that folder as JSON members."""
    return {
        "folder": str(folder),
        "identity": manifest.identity,
        "madeAt": write_instant(manifest.made_at),
        "store": manifest.store,
        "storeInBackup": manifest.has_store,
        "migration": manifest.migration,
        "sealing": manifest.sealing or None,
        "files": len(manifest.files),
        "bytes": sum(file.size for file in manifest.files),
    }


def manifest_lines(folder: Path, manifest: Manifest) -> Iterator[str]:
    """The backup in that folder for people."""
    size = sum(file.size for file in manifest.files)
    files = counted(len(manifest.files), "file")
    yield f"{folder}: the state {manifest.identity} as of {write_instant(manifest.made_at)}"
    yield f"  migration {manifest.migration}, {files}, {counted(size, 'byte')}"
    if not manifest.has_store:
        yield f"  without the store ({manifest.store}): dump it with pg_dump; {dump_told(manifest)}"


def _audit_data(verified: Verified) -> dict[str, Any] | None:
    """The audit as JSON members; None where it was not checked, as what holds it is damaged."""
    if verified.problems:
        return None
    return {
        "chains": len(verified.audit),
        "lines": sum(verdict.lines for verdict in verified.audit),
        "broken": verified.broken,
    }


def _audit_line(verified: Verified) -> str:
    if verified.problems:
        return "  audit: not checked"
    lines = sum(verdict.lines for verdict in verified.audit)
    parts = [counted(len(verified.audit), "chain"), counted(lines, "line")]
    return f"  audit: {', '.join(parts)}, {len(verified.broken) or 'none'} broken"


def _verdict_line(verified: Verified) -> str:
    if verified.problems:
        return f"NOT USABLE: {counted(len(verified.problems), 'problem')}"
    if verified.broken:
        return f"BROKEN: {counted(len(verified.broken), 'place')} of the audit not as written"
    return "in order"


def reason_of(error: OSError) -> str:
    """Why a file cannot be written or read."""
    if error.errno == errno.ENOSPC:
        return "the disk is full"
    return (error.strerror or str(error)).lower()


def end_if_wrong(verified: Verified) -> None:
    """Says on stderr what is wrong, and exits with 1; nothing where all is well."""
    for line in (*verified.problems, *(f"BROKEN: {place}" for place in verified.broken)):
        click.echo(legible(line), err=True)
    if verified.problems or verified.broken:
        raise click.exceptions.Exit(1)
