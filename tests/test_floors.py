"""Who may import whom: down, never up, never sideways; and third parties have their rooms."""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parent.parent
# Lowest first; who stands on the same floor does not see each other.
FLOORS = (
    {"gateway.events"},
    {
        "gateway.contract",
        "gateway.background",
        "gateway.identity",
        "gateway.assets",
        "gateway.purposes",
    },
    {"gateway.settings", "gateway.limits", "gateway.observe", "gateway.store"},
    {
        "gateway.sealing",
        "gateway.keys",
        "gateway.policy",
        "gateway.booking",
        "gateway.usage",
        "gateway.processes",
        "gateway.audit",
        "gateway.administrators",
    },
    {
        "gateway.pipeline",
        "gateway.backend",
        "gateway.examination",
        "gateway.state",
    },
    {"gateway.inquiries"},
    {"gateway.web", "gateway.admin"},
    {"gateway.lifecycle", "gateway.edge"},
    {"gateway.assembly"},
    {"gateway.app"},
    {"gateway.cli"},
    {"gateway.__main__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
# The practice system's house, lowest first too.
ADAPTER_FLOORS = (
    {"adapters.documents", "adapters.call_notes"},
    {"adapters.base"},
    {"adapters.examination"},
    {"adapters.values"},
    {"adapters.copies", "adapters.ids", "adapters.wrappers"},
    {"adapters.mapping"},
    {"adapters.mapped"},
    {"adapters.sql", "adapters.rest", "adapters.conformance"},
    {"adapters.doctor", "adapters.draft", "adapters.sample"},
    {"adapters"},
)
FLOOR |= {room: number for number, rooms in enumerate(ADAPTER_FLOORS) for room in rooms}
# What of the practice system's house each room sees; `base` is its shape.
ADAPTERS = {
    "gateway.observe": {"adapters.call_notes", "adapters.base", "adapters.documents"},
    "gateway.policy": {"adapters.base", "adapters.documents", "adapters.examination"},
    "gateway.booking": {"adapters.base", "adapters.wrappers"},
    "gateway.sealing": {"adapters.base"},
    "gateway.settings": {"adapters.documents"},
    "gateway.pipeline": {"adapters.call_notes", "adapters.base", "adapters.documents"},
    "gateway.web": {"adapters.call_notes", "adapters.base"},
    "gateway.backend": {
        "adapters",
        "adapters.base",
        "adapters.documents",
        "adapters.wrappers",
    },
    "gateway.examination": {
        "adapters.base",
        "adapters.doctor",
        "adapters.documents",
        "adapters.examination",
    },
    "gateway.inquiries": {"adapters.base", "adapters.documents", "adapters.examination"},
    "gateway.admin": {"adapters.base", "adapters.documents", "adapters.examination"},
    "gateway.lifecycle": {"adapters.base", "adapters.documents"},
    "gateway.assembly": {"adapters.base", "adapters.documents"},
    "gateway.cli": {
        "adapters.base",
        "adapters.doctor",
        "adapters.documents",
        "adapters.draft",
        "adapters.examination",
        "adapters.mapping",
        "adapters.sample",
    },
}
ROOMS_OF = {
    "aiohttp": (
        "gateway.web",
        "gateway.admin",
        "gateway.lifecycle",
        "gateway.assembly",
        "adapters.rest",
        "adapters.doctor.rest",
    ),
    "aiohttp_jinja2": ("gateway.admin",),
    "aiohttp_session": ("gateway.admin",),
    "jinja2": ("gateway.assets",),
    "argon2": ("gateway.administrators.passwords",),
    "multidict": ("gateway.web", "gateway.admin"),
    "aiohttp_remotes": ("gateway.web.addresses",),
    "yaml": ("adapters.documents.document",),
    "click": ("gateway.cli",),
    "rich": ("gateway.cli",),
    "sqlalchemy": (
        "gateway.store",
        "gateway.keys.store",
        "gateway.booking",
        "gateway.policy.running.versions",
        "gateway.sealing",
        "gateway.usage",
        "gateway.administrators",
        "gateway.audit.chains",
        "gateway.audit.index",
        "gateway.audit.questions",
        "adapters.sql",
        "adapters.doctor.sql",
        "adapters.draft.database",
        "adapters.draft.probe",
        "adapters.draft.tables",
    ),
    "alembic": ("gateway.store",),
    "prometheus_client": ("gateway.observe.metrics",),
    "opentelemetry": ("gateway.observe.otlp",),
    "aiocache": ("adapters.wrappers.redis",),
    "cachebox": ("adapters.wrappers.memory", "adapters.ids", "adapters.sql.engines.statements"),
    "pytest": ("adapters.conformance",),
    "redis": ("gateway.limits.redis", "adapters.wrappers.redis"),
    "asyncpg": ("gateway.store.postgres", "adapters.sql.engines.postgres"),
    "firebird": ("adapters.sql.engines.firebird",),
    "pyodbc": ("adapters.sql.engines.odbc", "adapters.sql.engines.odbc_dialects"),
    "dbf": (),  # only tests write such tables
    "cryptography": ("gateway.pipeline.cursor", "adapters.wrappers.redis"),
    "pydantic": (
        "gateway.settings",
        "gateway.state.backup",
        "gateway.cli.description",
        "adapters",
    ),
}
MODULES = sorted([*ROOT.glob("gateway/**/*.py"), *ROOT.glob("adapters/**/*.py")])


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """What can import a module, or read the environment."""
    kinds = (ast.Import, ast.ImportFrom, ast.Attribute)
    tree = ast.walk(ast.parse(file.read_bytes()))
    return tuple(node for node in tree if isinstance(node, kinds))


def imports(file: Path) -> Iterator[str]:
    """Every module that is imported, those inside functions too; `from a import b` is `a`."""
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module in {"gateway", "adapters", "gateway.web"}:
                yield from (_member(node.module, each.name) for each in node.names)
            else:
                yield node.module


def _member(package: str, name: str) -> str:
    module = ROOT / package.replace(".", "/") / name
    return f"{package}.{name}" if module.is_dir() or module.with_suffix(".py").exists() else package


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def faults(is_right: Callable[[str, str], bool]) -> list[str]:
    """The imports of all modules that are not right, each by its module and what it imports."""
    pairs = ((name_of(file), imported) for file in MODULES for imported in imports(file))
    return [
        f"{module} imports {imported}"
        for module, imported in pairs
        if not is_right(module, imported)
    ]


def points_down(module: str, imported: str) -> bool:
    house, room = imported.split(".", maxsplit=1)[0], room_of(module)
    if module.startswith("adapters"):
        if house != "adapters" or room_of(imported) == room:
            return house != "gateway"
        return FLOOR[room_of(imported)] < FLOOR[room]
    if house == "adapters":
        return ".".join(imported.split(".")[:2]) in ADAPTERS.get(room, set())
    if house == "gateway" and imported != "gateway" and room_of(imported) != room:
        return FLOOR[room_of(imported)] < FLOOR[room]
    return True


def is_in_its_room(module: str, imported: str) -> bool:
    rooms = ROOMS_OF.get(imported.split(".", maxsplit=1)[0])
    return rooms is None or any(module == room or module.startswith(f"{room}.") for room in rooms)


def test_imports_point_down() -> None:
    assert len(MODULES) > 200
    assert faults(points_down) == []


def test_third_parties_stay_in_their_rooms() -> None:
    assert faults(is_in_its_room) == []


def test_only_settings_and_the_start_up_guard_read_the_environment() -> None:
    guards = {"gateway.settings", "gateway.web.server"}
    readers = [
        name_of(file)
        for file in MODULES
        if name_of(file) not in guards
        and {node.attr for node in nodes(file) if _is_os(node)} & {"environ", "getenv"}
    ]
    assert readers == []


def _is_os(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    )


def test_the_contract_is_standard_library_only() -> None:
    outside = {
        imported
        for file in ROOT.glob("gateway/contract/*.py")
        for imported in imports(file)
        if imported.split(".")[0] in {*ROOMS_OF, "orjson", "msgspec", "adapters"}
    }
    assert outside == set()
