"""The sample clinic: a legacy-looking practice system to try the gateway on, and its mapping."""

from pathlib import Path

from adapters.sample.generate import create

__all__ = ["MAPPING", "create"]

MAPPING = Path(__file__).with_name("clinic.yaml")
