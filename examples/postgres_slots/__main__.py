"""`python -m examples.postgres_slots`: the database, an account, and the gateway in front."""

from pathlib import Path

from examples.launch import Example
from examples.postgres_slots.account import admit, exists
from examples.postgres_slots.generate import generate

EXAMPLE = Example(
    name="practice_slots",
    folder=Path(__file__).resolve().parent,
    server="postgresql://postgres@127.0.0.1/",
    exists=exists,
    generate=lambda url, scale: generate(url, scale=scale),
    admit=admit,
)

if __name__ == "__main__":
    EXAMPLE.command()()
