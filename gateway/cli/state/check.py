"""`clinic-gateway state check`: whether a state, or a backup of one, is whole and one thing."""

import asyncio
from pathlib import Path
from typing import Any

import click

from gateway.audit.chains import audit_folder
from gateway.audit.verification import ChainVerdict
from gateway.cli.audit.access import unread
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.state.told import (
    audit_line,
    audit_told,
    end_if_wrong,
    manifest_lines,
    manifest_told,
    say,
    verdict_line,
)
from gateway.inquiries.verification import AuditReport as AuditVerified
from gateway.inquiries.verification import verify_audit
from gateway.keys.store import KeyStore
from gateway.sealing import META as FINGERPRINT
from gateway.sealing import has_fingerprint, read_secret
from gateway.settings import Settings, StartRefused, check_own_place, load_settings
from gateway.state.backup import StateCheck, verify_backup
from gateway.state.folder import open_own_store
from gateway.state.manifest import read
from gateway.state.parts import StateParts, check_parts, find_parts
from gateway.store import Store
from gateway.store.base import HEAD


@click.command()
@click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path)
)
@config_option
@json_option
def check(folder: Path | None, config: Path | None, as_json: bool) -> None:
    """Check the state, or the backup in DIR; exit 1 where it is not whole, or of several states.

    A gateway may run meanwhile. Nothing is written.
    """
    if folder is not None:
        _of_backup(folder, as_json=as_json)
        return
    check_own_place(config)
    parts, verdicts = asyncio.run(_live(load_settings(config)))
    verified = StateCheck(problems=(), audit=tuple(verdicts))
    identity = f"identity {parts.identity}" if parts.identity else "no identity yet"
    data: dict[str, Any] = {"identity": parts.identity, "migration": parts.version}
    data |= {"store": parts.store.place, "audit": audit_told(verified)}
    lines = [verdict_line(verified), f"{parts.store}: {identity}", f"  migration {parts.version}"]
    say(data, iter([*lines, audit_line(verified)]), as_json=as_json)
    end_if_wrong(verified)


def _of_backup(folder: Path, *, as_json: bool) -> None:
    manifest = read(folder)
    verified = verify_backup(folder, manifest)
    data = {"folder": str(folder), **manifest_told(manifest)}
    data |= {"problems": verified.problems, "audit": audit_told(verified)}
    lines = [verdict_line(verified), *manifest_lines(folder, manifest), audit_line(verified)]
    say(data, iter(lines), as_json=as_json)
    end_if_wrong(verified)


async def _live(settings: Settings) -> tuple[StateParts, list[ChainVerdict]]:
    store = open_own_store(settings)
    try:
        parts = await find_parts(settings, store)
        check_parts(parts)
        if parts.version != HEAD:
            fail(_other_version(parts))
        await _check_secret(settings, store)
        # raises where it is no time: keys end by it
        await KeyStore(store).latest_time()
        return parts, list((await _verified(settings, store)).verdicts)
    finally:
        await store.aclose()


async def _verified(settings: Settings, store: Store) -> AuditVerified:
    """StartRefused where the audit cannot be read."""
    try:
        return await verify_audit(settings, store)
    except OSError as error:
        raise StartRefused(unread(audit_folder(settings), error)) from error


def _other_version(parts: StateParts) -> str:
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
