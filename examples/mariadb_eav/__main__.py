"""`python -m examples.mariadb_eav`: the database, an account, and the gateway in front."""

from pathlib import Path

from examples.launch import Example
from examples.mariadb_eav.account import admit, exists
from examples.mariadb_eav.generate import generate

EXAMPLE = Example(
    name="practice_eav",
    folder=Path(__file__).resolve().parent,
    server="mysql://root@127.0.0.1/",
    exists=exists,
    generate=lambda url, scale: generate(url, scale=scale),
    admit=admit,
)

if __name__ == "__main__":
    EXAMPLE.command()()
