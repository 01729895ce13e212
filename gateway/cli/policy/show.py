"""`clinic-gateway policy show`: which level sees which field, for a terminal or for others."""

import asyncio
import json
import textwrap
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gateway.cli.lines import legible
from gateway.cli.options import OneOf, config_option, json_option
from gateway.cli.policy.file import file_argument, loaded
from gateway.contract.access import LEVELS
from gateway.contract.resources import GOVERNED
from gateway.inquiries.policies import is_kept, policy_named
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.rules import AllOrNothing, Sight
from gateway.policy.telling.page import as_page
from gateway.policy.telling.sheets import as_csv, as_markdown
from gateway.policy.telling.wording import mask_in_words, masks_of, row_sentences
from gateway.settings import Settings, load_settings
from gateway.state import opened_if_begun

FORMATS = ("text", "markdown", "csv", "html", "json")
WIDTH = 80
_IN_TEXT = {AllOrNothing.WHOLE: "yes", AllOrNothing.HIDDEN: "-"}


@click.command()
@file_argument
@click.option(
    "--format",
    "wanted",
    type=OneOf("FORMAT", FORMATS),
    metavar="FORMAT",
    help="text, markdown, csv, html or json; text where it is left out.",
)
@config_option
@json_option
def show(file: Path | None, wanted: str | None, config: Path | None, as_json: bool) -> None:
    """Print which level sees which field, whole or how masked, and which records.

    FILE is the configured policy where it is left out; in its place, `running` or the beginning
    of the hash of a policy that ran. `html` is one page to print or to hand to
    a data protection officer: policy show --format html > what-partners-see.html
    """
    if as_json and wanted not in (None, "json"):
        raise click.UsageError(f"--json and --format {wanted} are two formats; keep one of them")
    wanted = "json" if as_json else wanted or "text"
    if file is not None and is_kept(str(file)):
        policy = asyncio.run(_kept(str(file), load_settings(config)))
    else:
        policy = loaded(file, config, as_json=wanted == "json")
    if wanted == "text":
        _print_tables(policy)
    else:
        click.echo(_written(policy, wanted), nl=False)


async def _kept(name: str, settings: Settings) -> Policy:
    """A policy that ran, out of the gateway's own store; StartRefused where there is none."""
    async with opened_if_begun(settings) as store:
        found = await policy_named(name, store)
    return compile_policy(found.name, found.hash, found.rules, lambda trouble: None)


def _written(policy: Policy, wanted: str) -> str:
    if wanted == "markdown":
        return as_markdown(policy)
    if wanted == "csv":
        return as_csv(policy)
    if wanted == "html":
        return as_page(policy, date.today())  # noqa: DTZ011 - the day on the clinic's own calendar
    return json.dumps(_matrix(policy), indent=2) + "\n"


def _matrix(policy: Policy) -> dict[str, Any]:
    """For each field of each resource, whether each level sees it whole; masks; conditions."""
    resources = {
        name: {
            path: {level.value: path in policy.visible(name, level) for level in LEVELS}
            for path in rules.fields
        }
        for name, rules in policy.rules.items()
    }
    masks: dict[str, dict[str, dict[str, str]]] = {}
    for name in policy.rules:
        for level in LEVELS:
            for path, mask in policy.masked(name, level).items():
                masks.setdefault(name, {}).setdefault(path, {})[level.value] = str(mask)
    records = {
        resource.name: {level.value: sentence for level, sentence in sentences}
        for resource in GOVERNED
        if (sentences := row_sentences(resource, policy.rules[resource.name]))
    }
    return {
        "file": policy.file,
        "hash": policy.hash,
        "resources": resources,
        "masks": masks,
        "records": records,
    }


def _print_tables(policy: Policy) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("field", no_wrap=True)
    for level in LEVELS:
        table.add_column(level.value, justify="center", no_wrap=True)
    for name, rules in policy.rules.items():
        table.add_section()
        table.add_row(f"[bold]{escape(name)}[/bold]")
        for path in rules.fields:
            shown = (_in_text(rules.sight(path, level)) for level in LEVELS)
            table.add_row(f"  {escape(path)}", *shown)
    console = Console(highlight=False, width=WIDTH)
    console.print(f"{escape(legible(policy.file))}, hash {policy.short_hash}", soft_wrap=True)
    console.print(table)
    for line in _notes(policy):
        click.echo(legible(line))


def _in_text(sight: Sight) -> str:
    return _IN_TEXT[sight] if isinstance(sight, AllOrNothing) else escape(str(sight))


def _notes(policy: Policy) -> Iterator[str]:
    """What the masks show, and which records exist, in lines of 80 columns."""
    for mask in masks_of(policy.rules.values()):
        yield from _wrapped(f"{mask}: {mask_in_words(mask)}")
    for resource in GOVERNED:
        for level, sentence in row_sentences(resource, policy.rules[resource.name]):
            yield from _wrapped(f"{resource.name} {level}: {sentence}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
