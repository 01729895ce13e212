"""Reads the settings of gateway.yaml and the environment, and says all that is wrong with them."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import SecretStr, ValidationError

from adapters.documents.document import Document, read_document
from adapters.documents.models import check, sentence
from adapters.documents.problems import DocumentErrors, Problem, did_you_mean
from gateway.events import Sayable
from gateway.settings.model import GROUPS, Group, Settings

PREFIX = "GATEWAY_"
# What Kubernetes tells every pod of a service that is called `gateway`; no setting looks like it.
_of_a_service = re.compile(
    r"GATEWAY_(SERVICE_HOST=.*|SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]+|PORT=(tcp|udp|sctp)://.*"
    r"|PORT_[0-9]+_(TCP|UDP|SCTP)(=(tcp|udp|sctp)://.*|_(PROTO|PORT|ADDR)=.*))"
).fullmatch
DEFAULT_FILE = Path("gateway.yaml")
# The variables that say where the gateway keeps what is its own.
_PLACES = ("GATEWAY_STATE", "GATEWAY_STORE")
# The settings that may name a database by a relative path.
_DATABASES = {"store", "url"}
GroupT = TypeVar("GroupT", bound=Group)


class StartRefused(Sayable):
    """Why the gateway does not start: one sentence, with the remedy.

    `setting` is the one that would have to be another, where there is such a one.
    """

    def __init__(self, text: str, setting: str = "") -> None:
        super().__init__(text)
        self.setting = setting


class ConfigurationErrors(DocumentErrors):
    """All that is wrong with a configuration; `settings` is what is left without that.

    `left_out` are the dotted names of the settings whose values are wrong.
    """

    def __init__(
        self, problems: Iterable[Problem], settings: Settings, left_out: Iterable[str] = ()
    ) -> None:
        super().__init__(problems)
        self.settings = settings
        self.left_out = frozenset(left_out)


def load_settings(config: Path | None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in that file, or in ./gateway.yaml where there is one, and the environment.

    ConfigurationErrors names everything that is wrong with either; DocumentErrors comes of a file
    that cannot be read at all.
    """
    config = configuration_file(config)
    document = _read(config)
    if not isinstance(document.data, dict):
        text = "a configuration names its settings, such as listen: 0.0.0.0:8080"
        raise DocumentErrors([document.problem((), text)])
    problems = [*document.flaws]
    try:
        check(document, Settings, strict=True)
    except DocumentErrors as error:
        problems += error.problems
    given, strangers = _variables(os.environ if environ is None else environ)
    problems += strangers
    try:
        Settings.model_validate(_overlaid({}, given))
    except ValidationError as error:
        problems += map(_problem, error.errors())
    folder = Path.cwd() if config is None else config.resolve().parent
    merged = _overlaid(document.data, given)
    try:
        settings, left_out = Settings.model_validate(merged), []
    except ValidationError as error:
        # what stands in one place alone has been said with that place
        problems = problems or [_problem(one) for one in error.errors()]
        for name, *inner in (one["loc"] for one in error.errors()):
            group = merged.get(str(name))
            if inner and isinstance(group, dict):
                group.pop(inner[0], None)
            else:
                merged.pop(str(name), None)
        settings = Settings.model_validate(merged)
        left_out = [_dotted(one) for one in error.errors()]
    if problems:
        raise ConfigurationErrors(problems, _located(settings, folder), left_out)
    return _located(settings, folder)


def sources(config: Path | None, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Where each setting's value comes from, by its dotted name: environment, file or default.

    Of a configuration that load_settings takes.
    """
    given, _ = _variables(os.environ if environ is None else environ)
    data = _read(configuration_file(config)).data
    found = {}
    for name, _ in names():
        group, _, inner = name.rpartition(".")
        in_file = inner in (data.get(group, {}) if group else data)
        found[name] = "environment" if name in given else ("file" if in_file else "default")
    return found


def configuration_file(config: Path | None) -> Path | None:
    """The file that counts: the given one, else the one in this folder where there is one."""
    return DEFAULT_FILE if config is None and DEFAULT_FILE.exists() else config


def _read(config: Path | None) -> Document:
    """The file, or nothing where there is none.

    Its `policy: {file: ..., widening: ...}` stands there as the settings that it stands for.
    """
    if config is None:
        return Document("", b"", data={})
    document = read_document(config, flawed=True)
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("policy"), dict):
        return document
    group, known = data.pop("policy"), {"file": "policy", "widening": "policy_widening"}
    for inner, value in group.items():
        name, place = known.get(inner, f"policy.{inner}"), ("policy", inner)
        if name in data:
            data[f"policy.{inner}"] = value  # said twice: this one is known by no name
            name = f"policy.{inner}"
        data[name] = value
        document.keys[name,] = document.keys[place]
        document.marks[name,] = document.marks[place]
    return document


def check_own_place(config: Path | None, environ: Mapping[str, str] | None = None) -> None:
    """StartRefused where nothing says where the state or the store is, but the defaults."""
    environ = os.environ if environ is None else environ
    if configuration_file(config) is None and environ.keys().isdisjoint(_PLACES):
        raise StartRefused(
            f"nothing says where the gateway's state is: no {DEFAULT_FILE} is in {Path.cwd()};"
            f" name the gateway's configuration with --config, or set {' or '.join(_PLACES)}"
        )


def names() -> Iterator[tuple[str, str]]:
    """Each setting's dotted name and what it means."""
    for name, info in Settings.model_fields.items():
        inner = GROUPS[name].model_fields if name in GROUPS else {}
        named = {f"{name}.{one}": it for one, it in inner.items()} or {name: info}
        for dotted, field in named.items():
            yield dotted, " ".join((field.description or "").split())


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.replace(".", "_").upper()


def _variables(environ: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """The settings that the environment gives, by dotted name; what it gives that is none."""
    known = {variable(name): name for name, _ in names()}
    given, problems = {}, []
    for key, value in environ.items():
        if key in known and value.strip():
            given[known[key]] = value
        elif key in known or (key.startswith(PREFIX) and not _of_a_service(f"{key}={value}")):
            text = f"no setting has that name{did_you_mean(key, known)}"
            text = "is empty: unset it or give it a value" if key in known else text
            problems.append(Problem(f"environment variable {key}", 0, 0, text))
    return given, problems


def _overlaid(data: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """A copy of the data, with the settings of these dotted names in place of its own."""
    merged = {name: dict(it) if isinstance(it, dict) else it for name, it in data.items()}
    for name, value in given.items():
        group, _, inner = name.rpartition(".")
        if group and not isinstance(merged.get(group), dict):
            merged[group] = {}
        (merged[group] if group else merged)[inner] = value
    return merged


def _dotted(error: Any) -> str:
    return ".".join(str(part) for part in error["loc"])


def _problem(error: Any) -> Problem:
    return Problem(f"environment variable {variable(_dotted(error))}", 0, 0, sentence(error))


def _located(settings: GroupT, folder: Path) -> GroupT:
    """With every path absolute, also that of a database file."""
    update: dict[str, Any] = {}
    for name, value in settings:
        if isinstance(value, Group):
            update[name] = _located(value, folder)
        elif isinstance(value, Path):
            update[name] = (folder / value).absolute()
        elif name in _DATABASES and value is not None:
            scheme, separator, path = value.get_secret_value().partition(":///")
            is_file = separator and scheme.startswith("sqlite")
            if is_file and not path.startswith(("/", ":memory:")):
                update[name] = SecretStr(f"{scheme}:///{quote(str(folder.absolute()))}/{path}")
    return settings.model_copy(update=update)
