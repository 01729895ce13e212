"""The texts that the panel needs: one for each name that it shows from a table of the gateway."""

from collections.abc import Iterator

from adapters.documents.problems import DocumentErrors, Problem
from gateway.admin.words import FOLDER, LANGUAGES, catalogue
from gateway.administrators.roles import Role
from gateway.contract.access import LEVELS, Permission
from gateway.contract.resources import RESOURCES
from gateway.policy.masks import KINDS
from gateway.policy.telling.wording import ENGLISH


def check_words() -> None:
    """Raises DocumentErrors with each text that is missing, or missing in a language."""
    problems = [*_missing(), *_untranslated()]
    if problems:
        raise DocumentErrors(problems)


def needed() -> Iterator[tuple[str, str]]:
    """The file and the name of each text that a page looks up by a name from a table."""
    for resource in RESOURCES:
        yield "resources", resource.name
        for path in resource.paths:
            yield "fields", f"{resource.name}.{path}"
    for permission in Permission:
        yield "rights", permission
    for each in (*Permission, *LEVELS):
        yield "rights", f"{each}_about"
    for role in Role:
        yield "roles", role
        yield "roles", f"{role}_about"
    for kind in KINDS:
        yield "masks", kind
    for phrase in ENGLISH:
        yield "conditions", phrase


def _missing() -> Iterator[Problem]:
    texts = catalogue()
    for file, name in needed():
        if f"{file}.{name}" not in texts:
            yield _problem(file, f"there is no text for {name}; add a line {_line(name)}")


def _untranslated() -> Iterator[Problem]:
    for full_name, texts in catalogue().items():
        file, _, name = full_name.partition(".")
        absent = [each for each in LANGUAGES if each not in texts]
        if absent:
            yield _problem(file, f"{name} has no text in {', '.join(absent)}; write {_line(name)}")


def _line(name: str) -> str:
    texts = ", ".join(f'{language} = "..."' for language in LANGUAGES)
    return f'"{name}" = {{ {texts} }}'


def _problem(file: str, text: str) -> Problem:
    return Problem(str(FOLDER / f"{file}.toml"), 0, 0, text)
