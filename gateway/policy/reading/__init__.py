"""Reads a policy file: the rules that it says, or everything that is wrong with it."""

from pathlib import Path

from adapters.documents.faults import FILE_CHECKS
from adapters.documents.problems import read_checks
from gateway.policy.masks import KINDS

_MASKS = ", ".join(kind.example for kind in KINDS.values())
_BOUNDS = [f"{kind.name} 1 to {kind.largest:,}" for kind in KINDS.values() if kind.largest]
_TABLE = Path(__file__).with_name("checks.toml")
CHECKS = {**FILE_CHECKS, **read_checks(_TABLE, masks=_MASKS, largest=", ".join(_BOUNDS))}
