"""The clinic gateway: stands between a clinic's practice system and its partners."""

__version__ = "0.1.0"
