"""What the commands on a state and its backups print."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gateway.cli.lines import legible, legible_json
from gateway.contract.fields import write_instant
from gateway.state.backup import StateCheck, dump_told
from gateway.state.manifest import Manifest


def manifest_told(manifest: Manifest) -> dict[str, Any]:
    """As JSON members."""
    return {
        "identity": manifest.identity,
        "madeAt": write_instant(manifest.made_at),
        "store": manifest.store,
        "storeInBackup": manifest.has_store,
        "migration": manifest.migration,
        "sealing": manifest.sealing or None,
        "files": len(manifest.files),
        "bytes": sum(each.size for each in manifest.files),
    }


def manifest_lines(folder: Path, manifest: Manifest) -> Iterator[str]:
    """For people."""
    size = sum(each.size for each in manifest.files)
    files = counted(len(manifest.files), "file")
    yield f"{folder}: the state {manifest.identity} as of {write_instant(manifest.made_at)}"
    yield f"  migration {manifest.migration}, {files}, {counted(size, 'byte')}"
    if not manifest.has_store:
        yield f"  without the store ({manifest.store}): dump it with pg_dump; {dump_told(manifest)}"


def audit_told(verified: StateCheck) -> dict[str, Any] | None:
    """The audit as JSON members; None where it was not checked, as what holds it is damaged."""
    verdicts = verified.audit
    if verified.problems:
        return None
    return {
        "chains": len(verdicts),
        "lines": sum(each.lines for each in verdicts),
        "broken": [each.broken for each in verdicts if each.broken],
    }


def audit_line(verified: StateCheck) -> str:
    """The audit for people."""
    if verified.problems:
        return "  audit: not checked"
    lines = sum(each.lines for each in verified.audit)
    parts = [counted(len(verified.audit), "chain"), counted(lines, "line")]
    return f"  audit: {', '.join(parts)}, {len(verified.broken) or 'none'} broken"


def verdict_line(verified: StateCheck) -> str:
    """How it stands, in a word or two."""
    if verified.problems:
        return f"NOT USABLE: {counted(len(verified.problems), 'problem')}"
    if verified.broken:
        return f"BROKEN: {counted(len(verified.broken), 'place')} of the audit not as written"
    return "in order"


def why(error: OSError) -> str:
    """Why a file cannot be written or read."""
    if error.errno == errno.ENOSPC:
        return "the disk is full"
    return (error.strerror or str(error)).lower()


def counted(number: int, noun: str) -> str:
    """Such as 1 file, 2 files."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def say(data: dict[str, Any], lines: Iterator[str], *, as_json: bool) -> None:
    """Print either."""
    if as_json:
        click.echo(legible_json(data))
    else:
        for line in lines:
            click.echo(legible(line))


def end_if_wrong(verified: StateCheck) -> None:
    """Say on stderr what is wrong, and exit with 1; nothing where all is well."""
    for each in verified.problems:
        click.echo(legible(each), err=True)
    for each in verified.broken:
        click.echo(legible(f"BROKEN: {each}"), err=True)
    if verified.problems or verified.broken:
        raise click.exceptions.Exit(1)
