"""Who looks at a record: a key of the store, or a level that a key might have."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.contract.access import AccessLevel, Permission
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS
from gateway.keys.key import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A level, with levels of their own for some resources, and the key that has them."""

    level: AccessLevel
    scopes: Mapping[str, AccessLevel]
    key: Key | None = None

    def level_for(self, resource: Resource) -> AccessLevel:
        """The level that applies to a resource."""
        return self.scopes.get(resource.name, self.level)

    def is_scoped(self, resource: Resource) -> bool:
        """Whether a scope decides, and not the general level."""
        return resource.name in self.scopes


def viewer_of(key: Key) -> Viewer:
    """The key as one who looks."""
    return Viewer(level=key.level, scopes=key.scopes, key=key)


def lacking(resource: Resource, key: Key) -> list[Permission]:
    """What the key lacks so that any call shows it the resource: one of these would do."""
    needed = {each.permission for each in OPERATIONS if each.returns is resource}
    return sorted(needed) if needed.isdisjoint(key.permissions) else []
