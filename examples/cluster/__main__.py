"""`python -m examples.cluster`: what is made once, before a cluster's gateways start."""

from pathlib import Path
from urllib.parse import quote

import click

from examples.cluster import databases, files
from examples.launch import server_troubles
from gateway.cli.command import said_plainly
from gateway.cli.output import fail


@click.group()
def cluster() -> None:
    """What the services `secrets` and `databases` of compose.yaml run."""


@cluster.command("secrets")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def make_secrets(folder: Path) -> None:
    """Make passwords, the sealing secret and gateway.yaml in FOLDER, for the images' users."""
    try:
        made = files.make(folder, files.Places(), files.READERS)
    except files.Incomplete as error:
        fail(f"{error}: put its volume back, or begin anew with docker compose down --volumes")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        fail(f"the secrets can't be made in {folder}: {reason}; this takes root")
    click.echo("the secrets are made" if made else "the secrets are there")


@cluster.command("databases")
@click.argument("configuration", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--server", required=True, help="Where they are made, as PostgreSQL's superuser.")
@click.option(
    "--password-file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with that user's password.",
)
def make_databases(configuration: Path, server: str, password_file: Path) -> None:
    """Make the databases and accounts that CONFIGURATION, a gateway.yaml, names."""
    password = quote(password_file.read_text("utf-8").strip())
    account, _, host = server.rpartition("@")
    with said_plainly(), server_troubles():
        databases.make(configuration, f"{account}:{password}@{host}")
    click.echo("the databases are there")


if __name__ == "__main__":
    cluster()
