"""Reads a policy file: the rules that it says, or everything that is wrong with it."""

from adapters.documents.problems import read_checks
from adapters.documents.yaml_errors import FILE_CHECKS
from gateway.policy.masks import KINDS

_MASKS = ", ".join(kind.example for kind in KINDS.values())
_BOUNDS = [f"{kind.name} 1 to {kind.largest:,}" for kind in KINDS.values() if kind.largest]
CHECKS = {**FILE_CHECKS, **read_checks(__file__, masks=_MASKS, largest=", ".join(_BOUNDS))}
