"""Somebody who may use the panel. The password is not part of it."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from gateway.administrators.roles import RIGHTS, Right, Role

LONGEST_NAME = 60
_name = re.compile(r"[\w.@' +-]+").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Administrator:
    """One of them; times are in UTC. With `one_time` the next thing to do is choose a password."""

    id: str
    name: str
    role: Role
    one_time: bool
    created_at: datetime
    signed_in_at: datetime | None = None

    def may(self, right: Right) -> bool:
        """Whether the role gives that right."""
        return right in RIGHTS[self.role]


def name_of(text: str) -> str:
    """The name as it is kept; ValueError, with the remedy, for what is none."""
    name = unicodedata.normalize("NFC", " ".join(text.split()))
    if not 1 <= len(name) <= LONGEST_NAME or _name(name) is None:
        raise ValueError(
            f"write a name of 1 to {LONGEST_NAME} letters, digits, blanks and . @ ' + - _"
        )
    return name


def name_key(name: str) -> str:
    """What two spellings of one name have in common."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()
