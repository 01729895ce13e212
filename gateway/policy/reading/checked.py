"""Looks at a policy file as a whole: what keeps it from being used, and what is risky in it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from adapters.base import Trouble
from adapters.documents.document import read_document
from adapters.documents.problems import DocumentErrors, Problem
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.reading.document import load_policy, read_rules
from gateway.policy.reading.risks import note_risks
from gateway.settings import shipped_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found, in the order of the file; `policy` where there is no error."""

    file: str
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    policy: Policy | None = None


def check_policy(path: Path) -> Checked:
    """All that is to be said of the file at `path`; a file that is no YAML has no warnings."""
    try:
        reading = read_rules(lambda: read_document(path))
    except DocumentErrors as error:
        return Checked(file=str(path), errors=error.problems)
    usual = load_policy(shipped_policy(), _ignored).rules
    warnings = tuple(sorted(set(note_risks(reading, usual).problems)))
    if reading.problems:
        errors = DocumentErrors(reading.problems).problems
        return Checked(file=str(path), errors=errors, warnings=warnings)
    digest = hashlib.sha256(reading.notes.document.content).hexdigest()
    policy = compile_policy(str(path), digest, reading.rules, _ignored)
    return Checked(file=str(path), warnings=warnings, policy=policy)


def _ignored(trouble: Trouble) -> None:
    pass
