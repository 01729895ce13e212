"""`clinic-gateway state restore`: a backup put back, where its state is gone."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gateway.audit.chains import audit_folder
from gateway.cli.deeds import recording
from gateway.cli.lines import counted, legible, say
from gateway.cli.options import fail, shared_options
from gateway.cli.state import (
    end_if_wrong,
    folder_argument,
    manifest_data,
    manifest_lines,
    reason_of,
)
from gateway.contract.fields import write_instant
from gateway.keys.store import KeyStore
from gateway.settings import Settings, StartRefused, configuration_file, load_settings
from gateway.state.audited_deeds import deeds_since
from gateway.state.manifest import Manifest, read
from gateway.state.newer_audit import enter, read_newer_audit
from gateway.state.opening import opened
from gateway.state.restore import left_out, restore, restore_configuration
from gateway.state.verified import verify_backup


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The files that were put back, and notes; `keeps_store` is whether a store was there."""

    files: Sequence[Path]
    keeps_store: bool
    notes: Sequence[str]


@click.command("restore")
@folder_argument
@shared_options
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
        fail(f"{place} cannot be put back: {reason_of(error)}; mend that and restore again")
    notes = [*_elsewhere(folder, manifest, config), *_notes(manifest, restored), *restored.notes]
    data = manifest_data(folder, manifest)
    data |= {"restored": list(map(str, restored.files)), "storeKept": restored.keeps_store}
    data |= {"notes": notes, "broken": verified.broken}
    files = f"  {counted(len(restored.files), 'file')} put back; nothing was overwritten"
    say(data, [*manifest_lines(folder, manifest), files], as_json=as_json)
    for note in () if as_json else (*notes, *verified.broken):
        click.echo(legible(f"note: {note}"))


async def _restored(folder: Path, manifest: Manifest, config: Path | None) -> Restored:
    place = (named := configuration_file(config)) and named.absolute()
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
        notes: list[str] = []
        if not keeps_store:
            names = {key.id: key.name for key, _ in (await KeyStore(store).list()).keys}
            notes += deeds_since(audit_folder(settings), manifest.made_at, names)
        details = {"backup": write_instant(manifest.made_at), "files": len(files)}
        chains = [chain.id for chain in newer.chains]
        async with (
            recording(settings, store) as deed,
            deed("state restored", manifest.identity, **details, chains=chains),
        ):
            await enter(store, newer)
    notes += [f"this is not entered into the store: {place}" for place in newer.broken]
    return Restored(files=files, keeps_store=keeps_store, notes=notes)


async def _put_back(
    folder: Path, manifest: Manifest, place: Path | None
) -> tuple[Settings, list[Path]]:
    """The settings, and which files were put back; none where the restore is refused."""
    if place is None or place.exists():  # noqa: ASYNC240 - a command does nothing else meanwhile
        settings = load_settings(place)
        files = await restore(settings, folder, manifest)
        return settings, files + (restore_configuration(folder, manifest, place) if place else [])
    files = restore_configuration(folder, manifest, place)
    try:
        settings = load_settings(place)
        return settings, files + await restore(settings, folder, manifest)
    except StartRefused:
        for file in files:
            file.unlink()
        raise


def _elsewhere(folder: Path, manifest: Manifest, config: Path | None) -> Iterator[str]:
    """The files of the configuration that lay elsewhere, and are missing there."""
    place = configuration_file(config)
    for kept in left_out(manifest, place.absolute()) if place else ():
        if not Path(kept.original).exists():
            yield f"{kept.original} is missing: copy it from {folder / kept.file}"


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
