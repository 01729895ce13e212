"""Starts the FHIR server of the example: Node with Medplum's router, installed by npm once."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build" / "fhir-clinic"
CLIENT, SECRET = "clinic-gateway", "correct horse battery"
# Seconds that npm may take, and the server to start.
INSTALLED, STARTED = 300, 60


class CannotStart(Exception):
    """The server cannot be started; its text says why, and what to do."""


def installed() -> Path:
    """Returns the folder with what package.json names, after npm has put it there."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise CannotStart("node and npm are not there: apt-get install nodejs npm")
    BUILD.mkdir(parents=True, exist_ok=True)
    wanted, taken = HERE / "package.json", BUILD / "package.json"
    shutil.copy(HERE / "server.mjs", BUILD)
    if taken.exists() and taken.read_bytes() == wanted.read_bytes():
        return BUILD
    shutil.copy(wanted, taken)
    words = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--fetch-retries=1"]
    try:
        subprocess.run(  # noqa: S603 - words of this file
            words, cwd=BUILD, capture_output=True, check=True, text=True, timeout=INSTALLED
        )
    except subprocess.SubprocessError as error:
        taken.unlink()
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[0]
        raise CannotStart(f"npm has to reach its registry once: {said}") from error
    return BUILD


@contextmanager
def serving(port: int = 0, *, token_lives: int = 300, most: int = 20) -> Iterator[str]:
    """Serves an empty store until the context ends; yields the server's address.

    It listens at the port, or at a free one. A page has so many entries at the most.
    """
    with socket.create_server(("127.0.0.1", port)) as taken:
        port = taken.getsockname()[1]
    words = ["node", "server.mjs", str(port), str(token_lives), str(most)]
    process = subprocess.Popen(  # noqa: S603 - as above
        words, cwd=installed(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        said = process.stdout.readline() if process.stdout else ""
        if not said.startswith("listening at "):
            raise CannotStart(f"the server did not start: is port {port} free?")
        yield said.removeprefix("listening at ").strip()
    finally:
        process.terminate()
        process.communicate(timeout=STARTED)
