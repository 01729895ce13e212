"""`clinic-gateway state restore`: a backup put back, where its state is gone."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from gateway.audit.files import audit_folder
from gateway.cli.deeds import recording
from gateway.cli.lines import legible
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.state.told import end_if_wrong, manifest_lines, manifest_told, say
from gateway.contract.fields import write_instant
from gateway.settings import configuration_file, load_settings
from gateway.state.manifest import Manifest, read
from gateway.state.opening import opened
from gateway.state.restore import left_out, restore, restore_configuration
from gateway.state.since import deeds_since
from gateway.state.verified import verify_backup


@click.command("restore")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@config_option
@json_option
def restore_state(folder: Path, config: Path | None, as_json: bool) -> None:
    """Verify the backup in DIR, and put back what is missing of its state.

    Nothing is overwritten: where there is a state already, or a gateway runs, it is refused. Files
    of the configuration that are missing are put back first, into the folder of --config. If a
    restore was interrupted, run the command again.
    """
    manifest = read(folder)
    verified = verify_backup(folder, manifest)
    if verified.problems:
        end_if_wrong(verified)
    try:
        restored, deeds = asyncio.run(_restored(folder, manifest, config))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        fail(f"{error.filename} cannot be put back: {reason}; mend that and restore again")
    data = {"folder": str(folder), **manifest_told(manifest), "restored": list(map(str, restored))}
    notes = [*_elsewhere(folder, manifest, config), *_notes(manifest), *deeds]
    data |= {"notes": notes, "broken": verified.broken}
    say(data, _lines(folder, manifest, restored), as_json=as_json)
    if not as_json:
        for note in (*notes, *verified.broken):
            click.echo(legible(f"note: {note}"))


async def _restored(
    folder: Path, manifest: Manifest, config: Path | None
) -> tuple[Sequence[Path], Sequence[str]]:
    place = configuration_file(config)
    if place is None and manifest.configuration is not None:
        fail(
            "there is no gateway.yaml here: name where the configuration goes, such as --config"
            f" {manifest.configuration}"
        )
    restored = restore_configuration(folder, manifest, place.absolute()) if place else []
    settings = load_settings(place)
    restored += await restore(settings, folder, manifest)
    since = deeds_since(audit_folder(settings), manifest.made_at)
    # what has been put back is looked at as every command looks at it
    async with opened(settings) as store, recording(settings, store) as deed:
        made_at = write_instant(manifest.made_at)
        async with deed("state restored", manifest.identity, backup=made_at, files=len(restored)):
            pass
    return restored, since


def _lines(folder: Path, manifest: Manifest, restored: Sequence[Path]) -> Iterator[str]:
    yield from manifest_lines(folder, manifest)
    yield f"  {len(restored)} files put back; nothing was overwritten"


def _elsewhere(folder: Path, manifest: Manifest, config: Path | None) -> Iterator[str]:
    place = configuration_file(config)
    for each in left_out(manifest, place.absolute()) if place else ():
        if not Path(each.original).exists():
            yield f"{each.original} is missing: copy it from {folder / each.file}"


def _notes(manifest: Manifest) -> Iterator[str]:
    at = write_instant(manifest.made_at)
    yield (
        f"keys that were revoked after {at} work again, and keys that were made since do not: look"
        " through `clinic-gateway keys list` before partners call"
    )
    yield (
        f"bookings after {at} are forgotten here and stand in the practice system: a partner that"
        " repeats one is told 409"
    )
