"""A PostgreSQL practice system of rooms and slot rows, in naive UTC."""

from pathlib import Path

from examples.postgres_slots.generate import generate

__all__ = ["MAPPING", "generate"]

MAPPING = Path(__file__).with_name("mapping.yaml")
