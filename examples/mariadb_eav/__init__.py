"""A MariaDB practice system of entities, attributes and values, in naive local time."""

from pathlib import Path

from examples.mariadb_eav.generate import generate

__all__ = ["MAPPING", "generate"]

MAPPING = Path(__file__).with_name("mapping.yaml")
