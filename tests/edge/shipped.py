"""The proxy files of the examples: each is what the command prints for a stated configuration."""

import tempfile
from pathlib import Path

from click.testing import CliRunner

from examples.cluster import files
from gateway.cli import main

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
HERE = ("--config", str(EXAMPLES / "proxies" / "gateway.yaml"))
NODES = ("--node", "node-1=172.31.254.11", "--node", "node-2=172.31.254.12")
# The configuration of the cluster's nodes, once it is made.
MADE = "MADE"
WORDS = {
    "proxies/haproxy.cfg": ("haproxy", *HERE),
    "proxies/nginx.conf": ("nginx", *HERE),
    "cluster/haproxy.cfg": ("haproxy", "--config", MADE, *NODES),
}


def printed(name: str) -> str:
    """What the command prints for that file of the examples."""
    with tempfile.TemporaryDirectory() as folder:
        files.make(Path(folder), files.Places())
        made = str(Path(folder, files.CONFIGURATION))
        words = [made if each is MADE else each for each in WORDS[name]]
        done = CliRunner().invoke(main, ["proxy", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def write() -> None:
    """Write each file anew."""
    for name in WORDS:
        (EXAMPLES / name).write_text(printed(name), "utf-8")
