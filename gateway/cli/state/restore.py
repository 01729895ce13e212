"""`clinic-gateway state restore`: a backup put back, where its state is gone."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gateway.audit.chains import audit_folder
from gateway.cli.deeds import recording
from gateway.cli.lines import legible
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.state.told import counted, end_if_wrong, manifest_lines, manifest_told, say, why
from gateway.contract.fields import write_instant
from gateway.keys.store import KeyStore
from gateway.settings import Settings, StartRefused, configuration_file, load_settings
from gateway.state.backup import verify_backup
from gateway.state.folder import opened
from gateway.state.manifest import Manifest, read
from gateway.state.newer_audit import NewerAudit, deeds_since, enter, read_newer_audit
from gateway.state.restore import left_out, restore, restore_configuration
from gateway.store import Store


@click.command("restore")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@config_option
@json_option
def restore_state(folder: Path, config: Path | None, as_json: bool) -> None:
    """Verify the backup in DIR, and put back what is missing of its state.

    Nothing is overwritten: a store of the same state that is there is kept. Where parts of another
    state are there, or a gateway runs, it is refused. Files of the configuration that are missing
    are put back too, into the folder of --config. If a restore was interrupted, run the command
    again.
    """
    manifest = read(folder)
    verified = verify_backup(folder, manifest)
    if verified.problems:
        end_if_wrong(verified)
    try:
        restored = asyncio.run(_restored(folder, manifest, config))
    except OSError as error:
        place = error.filename or folder
        fail(f"{place} cannot be put back: {why(error)}; mend that and restore again")
    data = {"folder": str(folder), **manifest_told(manifest)}
    data |= {"restored": list(map(str, restored.files)), "storeKept": restored.keeps_store}
    notes = [*_elsewhere(folder, manifest, config), *_notes(manifest, restored), *restored.notes]
    data |= {"notes": notes, "broken": verified.broken}
    say(data, _lines(folder, manifest, restored.files), as_json=as_json)
    if not as_json:
        for note in (*notes, *verified.broken):
            click.echo(legible(f"note: {note}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The files that were put back, and notes; `keeps_store` is whether a store was there."""

    files: Sequence[Path]
    keeps_store: bool
    notes: Sequence[str]


def _is_there(place: Path) -> bool:
    return place.exists()


async def _put_back(
    folder: Path, manifest: Manifest, place: Path | None
) -> tuple[Settings, list[Path]]:
    """The settings, and which files were put back; none where the restore is refused."""
    if place is None or _is_there(place):
        settings = load_settings(place)
        files = await restore(settings, folder, manifest)
        return settings, files + (restore_configuration(folder, manifest, place) if place else [])
    files = restore_configuration(folder, manifest, place)
    try:
        settings = load_settings(place)
        return settings, files + await restore(settings, folder, manifest)
    except StartRefused:
        for each in files:
            each.unlink()
        raise


async def _restored(folder: Path, manifest: Manifest, config: Path | None) -> Restored:
    place = (found := configuration_file(config)) and found.absolute()
    if place is None and manifest.configuration is not None:
        fail(
            "there is no gateway.yaml here: name where the configuration goes, such as --config"
            f" {manifest.configuration}"
        )
    settings, files = await _put_back(folder, manifest, place)
    # what has been put back is looked at as every command looks at it
    async with opened(settings) as store:
        keeps_store = manifest.has_store and Path(store.place) not in files
        newer = await read_newer_audit(settings, store)
        if keeps_store and not files and not newer.chains:
            fail(
                f"there is a state in {settings.state} already, of the backup's identity, and no"
                " part of it is missing: nothing was put back"
            )
        deeds = [] if keeps_store else await _deeds_since(settings, store, manifest)
        await _entered(settings, store, manifest, newer, files)
    broken = [f"this is not entered into the store: {each}" for each in newer.broken]
    return Restored(files=files, keeps_store=keeps_store, notes=[*deeds, *broken])


async def _deeds_since(settings: Settings, store: Store, manifest: Manifest) -> Sequence[str]:
    names = {key.id: key.name for key, _ in (await KeyStore(store).list()).keys}
    return deeds_since(audit_folder(settings), manifest.made_at, names)


async def _entered(
    settings: Settings, store: Store, manifest: Manifest, newer: NewerAudit, files: Sequence[Path]
) -> None:
    """The audit that is newer than the store enters it; the deed names its chains."""
    told = {"backup": write_instant(manifest.made_at), "files": len(files)}
    chains = [each.id for each in newer.chains]
    async with (
        recording(settings, store) as deed,
        deed("state restored", manifest.identity, **told, chains=chains),
    ):
        await enter(store, newer)


def _lines(folder: Path, manifest: Manifest, restored: Sequence[Path]) -> Iterator[str]:
    yield from manifest_lines(folder, manifest)
    yield f"  {counted(len(restored), 'file')} put back; nothing was overwritten"


def _elsewhere(folder: Path, manifest: Manifest, config: Path | None) -> Iterator[str]:
    place = configuration_file(config)
    for each in left_out(manifest, place.absolute()) if place else ():
        if not Path(each.original).exists():
            yield f"{each.original} is missing: copy it from {folder / each.file}"


def _notes(manifest: Manifest, restored: Restored) -> Iterator[str]:
    if restored.keeps_store:
        yield "the store that is here is kept, with its keys and bookings since the backup"
        return
    at = write_instant(manifest.made_at)
    yield (
        f"keys that were revoked after {at} work again, and keys that were made since do not: look"
        " through `clinic-gateway keys list` before partners call"
    )
    yield (
        f"bookings after {at} are forgotten here and stand in the practice system: a partner that"
        " repeats one is told 409"
    )
