"""What was asked of the preview: whose eyes, and which kind of record."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from multidict import MultiMapping

from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import GOVERNED
from gateway.keys.key import Key

LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """As it was written; `resource` is "" where none was chosen, `scopes` only name known ones."""

    key: str
    level: AccessLevel
    scopes: Mapping[str, AccessLevel]
    resource: str
    wants_ids: bool

    def members(self, key: Key | None = None, resource: str = "") -> Iterator[tuple[str, str]]:
        """The same as names and values of a form, with the key that was found for it."""
        if key is not None or self.key:
            yield "key", self.key if key is None else key.id
        else:
            yield "level", self.level.value
            yield from ((f"scope.{name}", level.value) for name, level in self.scopes.items())
        yield "resource", resource or self.resource


def asked_in(given: MultiMapping[str]) -> Asked:
    """What a query or a form holds."""
    named = [each.name for each in GOVERNED]
    level, resource = given.get("level", ""), given.get("resource", "")
    scopes = {name: given.get(f"scope.{name}", "") for name in named}
    return Asked(
        key=given.get("key", "").strip()[:LONGEST],
        level=AccessLevel(level) if level in set(LEVELS) else AccessLevel.BASIC,
        scopes={name: AccessLevel(each) for name, each in scopes.items() if each in set(LEVELS)},
        resource=resource if resource in named else "",
        wants_ids=bool(given.get("ids")),
    )
