"""Reads the policy file's bytes as they are at one moment, and never waits for what is no file."""

import os
import stat
from dataclasses import dataclass
from errno import EINVAL, EISDIR
from hashlib import sha256
from pathlib import Path

from adapters.documents.document import LARGEST
from adapters.documents.problems import Problem
from gateway.policy.cases.file import LARGEST as LARGEST_CASES
from gateway.policy.cases.run import cases_beside


@dataclass(frozen=True, slots=True)
class Found:
    """What lies where the policy should be.

    `content` is empty where nothing can be read, and `problem` says why. `hash` is the SHA-256 of
    the content in hexadecimal digits, "" where the whole of it was not read. Two that are equal
    are the same policy with the same cases.
    """

    content: bytes
    hash: str
    problem: Problem | None = None
    cases: str = ""


def find(policy: Path) -> Found:
    """The bytes of the file now, of one that is too large only the first ones."""
    cases = _digest(cases_beside(policy))
    try:
        content = _read(policy, LARGEST)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Found(b"", "", Problem(str(policy), 0, 0, f"cannot be read: {reason}"), cases)
    whole = len(content) <= LARGEST
    return Found(content, sha256(content).hexdigest() if whole else "", cases=cases)


def _digest(path: Path) -> str:
    try:
        return sha256(_read(path, LARGEST_CASES)).hexdigest()
    except OSError:
        return ""


def _read(path: Path, largest: int) -> bytes:
    """At most one byte more than the largest; OSError for what is no plain file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(EINVAL, "it is no plain file")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read(largest + 1)
    finally:
        os.close(descriptor)
