"""What an administrator may do, by role."""

from collections.abc import Mapping
from enum import StrEnum


class Role(StrEnum):
    """`admin` may do everything, `operator` all but keys and people, `auditor` only reads."""

    ADMIN = "admin"
    OPERATOR = "operator"
    AUDITOR = "auditor"


class Right(StrEnum):
    """What a page or an action asks for."""

    READ = "read"
    KEYS = "keys"  # make, change, rotate and revoke keys
    POLICY = "policy"  # approve or decline a waiting policy
    CHECK = "check"  # have the practice system examined, or the audit verified
    PEOPLE = "people"  # administrators and everybody's sessions


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.ADMIN: frozenset(Right),
    Role.OPERATOR: frozenset({Right.READ, Right.POLICY, Right.CHECK}),
    Role.AUDITOR: frozenset({Right.READ}),
}
