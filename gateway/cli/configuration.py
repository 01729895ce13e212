"""`clinic-gateway settings`: every setting, its value now, and what it means."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import SecretStr

from gateway.cli.options import config_option, json_option
from gateway.settings import Settings, load_settings, names, sources, variable
from gateway.state import store_place

MASKED = "********"


@click.command()
@config_option
@json_option
def settings(config: Path | None, as_json: bool) -> None:
    """Print every setting with its value in force; secrets are masked.

    A value comes from the environment, from the file, or is the default.
    """
    found = list(_rows(load_settings(config), sources(config)))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for row in found:
        click.echo(f"{row['name']}: {'' if row['value'] is None else row['value']}")
        click.echo(f"    {row['help']}\n    {row['variable']} (now: {row['source']})")


def _rows(settings: Settings, source: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for name, summary in names():
        value: Any = settings
        for part in name.split("."):
            value = getattr(value, part)
        yield {
            "name": name,
            "value": store_shown(settings) if name == "store" else _shown(value),
            "source": source[name],
            "help": summary,
            "variable": variable(name),
        }


def store_shown(settings: Settings) -> Any:
    """Where the gateway's own database is, without a password."""
    return _shown(settings.store or store_place(settings))


def _shown(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return _shown_secret(value.get_secret_value())
    return str(value) if isinstance(value, Path) else value


def _shown_secret(text: str) -> str:
    """A database address without its password; of any other secret, nothing."""
    if "://" not in text:
        return MASKED
    scheme, _, rest = text.partition("://")
    credentials, at, place = rest.rpartition("@")
    user = credentials.partition(":")[0]
    return f"{scheme}://{user}:{MASKED}@{place}" if at else text
