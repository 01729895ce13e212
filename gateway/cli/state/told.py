"""What the commands on a state and its backups print."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from gateway.audit.verify import Verdict
from gateway.cli.lines import legible, legible_json
from gateway.contract.fields import write_instant
from gateway.state.manifest import Manifest
from gateway.state.verified import Verified, store_told


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
    yield f"{folder}: the state {manifest.identity} as of {write_instant(manifest.made_at)}"
    yield f"  migration {manifest.migration}, {len(manifest.files)} files, {size} bytes"
    if not manifest.has_store:
        yield f"  without the store, whose server makes its dump: {store_told(manifest)}"


def audit_told(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The audit as JSON members."""
    return {
        "chains": len(verdicts),
        "lines": sum(each.lines for each in verdicts),
        "broken": [each.broken for each in verdicts if each.broken],
    }


def audit_line(verdicts: Sequence[Verdict]) -> str:
    """The audit for people."""
    told = audit_told(verdicts)
    counts = {"chains": told["chains"], "lines": told["lines"], "broken": len(told["broken"])}
    return "  audit: " + ", ".join(f"{name} {count}" for name, count in counts.items())


def say(data: dict[str, Any], lines: Iterator[str], *, as_json: bool) -> None:
    """Print either."""
    if as_json:
        click.echo(legible_json(data))
    else:
        for line in lines:
            click.echo(legible(line))


def end_if_wrong(verified: Verified) -> None:
    """Say on stderr what is wrong, and exit with 1; nothing where all is well."""
    for each in verified.problems:
        click.echo(legible(each), err=True)
    for each in verified.broken:
        click.echo(legible(f"BROKEN: {each}"), err=True)
    if verified.problems or verified.broken:
        raise click.exceptions.Exit(1)
