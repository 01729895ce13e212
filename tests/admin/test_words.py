"""Every text stands in both languages, and every text that a page asks for is there."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.documents.problems import DocumentErrors
from gateway.admin import words as vocabulary
from gateway.admin.words import (
    FOLDER,
    LANGUAGES,
    PageClock,
    Text,
    catalogue,
    check_words,
    language_of,
    needed,
    words,
)
from gateway.administrators.administrator import Role
from gateway.contract.access import LEVELS, Permission
from gateway.contract.resources import RESOURCES
from gateway.policy.masks import KINDS

ADMIN = FOLDER.parent
TEMPLATES = sorted(ADMIN.glob("templates/**/*.html"))
# A whole name, or the beginning of one that is put together.
_asked = re.compile(r"""(?:\bt|words|said|has)\(\s*["']([a-z-]+\.[A-Za-z0-9_.]*)["']( ~)?""")


def forms(text: Text) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def places(text: Text) -> set[str]:
    """The names in braces."""
    return {name for form in forms(text) for _, name, _, _ in Formatter().parse(form) if name}


def test_whatever_the_tables_name_has_its_words() -> None:
    """First, and alone in this: what is missing is named with the file that a line is added to."""
    check_words()
    names = set(needed())
    assert {f"fields.{each.name}.{path}" for each in RESOURCES for path in each.paths} < names
    assert {f"resources.{each.name}" for each in RESOURCES} < names
    assert {f"rights.{each}" for each in Permission} | {f"roles.{each}" for each in Role} < names
    assert {f"masks.{each}" for each in KINDS} < names
    assert {f"rights.{each}_about" for each in (*Permission, *LEVELS)} < names


def test_each_text_says_the_same_in_each_language() -> None:
    wrong = [name for name, texts in catalogue().items() if not are_alike(texts)]
    assert wrong == []


def are_alike(texts: Mapping[str, Text]) -> bool:
    """The same languages, places and number of forms; nothing is empty, or blank at an end."""
    named = [places(text) for text in texts.values()]
    numbers = [len(forms(text)) for text in texts.values()]
    every = [form for text in texts.values() for form in forms(text)]
    return (
        texts.keys() == set(LANGUAGES)
        and all(each == named[0] for each in named)
        and all(each == numbers[0] for each in numbers)
        and all(form and form.strip() == form for form in every)
    )


def test_pages_ask_for_texts_that_are_there_and_no_text_is_left_over() -> None:
    sources = [*TEMPLATES, *sorted(ADMIN.glob("**/*.py"))]
    asked: set[str] = set()
    begun: set[str] = set()
    for source in sources:
        for name, goes_on in _asked.findall(source.read_text("utf-8")):
            (begun if goes_on else asked).add(name)
    assert asked <= catalogue().keys()
    named = "\n".join(source.read_text("utf-8") for source in sources)
    left_over = [
        name
        for name in catalogue()
        if name not in asked
        and not any(name.startswith(each) for each in begun)
        and f'"{name}"' not in named
        and f'f"{name.partition(".")[0]}.' not in named
    ]
    assert left_over == []


def complete() -> dict[str, Mapping[str, Text]]:
    """The texts, with one for whatever still needs its own."""
    return {name: dict.fromkeys(LANGUAGES, name) for name in needed()} | dict(catalogue())


def said_of(texts: Mapping[str, Mapping[str, Text]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a start says of these texts."""
    monkeypatch.setattr(vocabulary, "catalogue", lambda: texts)
    with pytest.raises(DocumentErrors) as refused:
        check_words()
    return [str(each) for each in refused.value.problems]


@pytest.mark.parametrize("absent", {name.partition(".")[0]: name for name in needed()}.values())
def test_a_text_that_is_missing_is_named_with_its_file(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _, name = absent.partition(".")
    texts = {each: found for each, found in complete().items() if each != absent}
    assert said_of(texts, monkeypatch) == [
        f"{FOLDER / file}.toml: there is no text for {name}; add a line"
        f' "{name}" = {{ en = "...", fr = "..." }}'
    ]


def test_a_text_in_one_language_alone_is_named_with_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = {**complete(), "fields.clients.phone": {"en": "Telephone"}}
    assert said_of(texts, monkeypatch) == [
        f"{FOLDER}/fields.toml: clients.phone has no text in fr; write"
        ' "clients.phone" = { en = "...", fr = "..." }'
    ]


def test_a_file_of_texts_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fields.toml").write_text('"clients.id" = {\n')
    monkeypatch.setattr("gateway.admin.words.FOLDER", tmp_path)
    with pytest.raises(DocumentErrors, match=r"fields.toml: is not valid TOML: .* line 1"):
        catalogue.__wrapped__()


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("fr", "fr"),
        ("fr-CA,fr;q=0.9,en;q=0.8", "fr"),
        ("de-DE,de;q=0.9,fr;q=0.5,en;q=0.4", "fr"),
        ("en-GB,fr;q=0.9", "en"),
        ("fr;q=0", "en"),
        ("en;q=.1,fr;q=.9", "fr"),
        ("fr;q=.,en", "en"),
        ("*", "en"),
        ("FR", "fr"),
    ],
)
def test_the_browser_chooses_the_language(accepted: str, language: str) -> None:
    assert language_of(accepted) == language


@given(st.text(max_size=200))
def test_whatever_a_browser_says_there_is_a_language(accepted: str) -> None:
    assert language_of(accepted) in LANGUAGES


def test_numbers_and_shares_are_written_as_the_language_has_them() -> None:
    assert words("en").number(1234.5, 1) == "1,234.5"
    assert words("fr").number(1234.5, 1) == "1\u202f234,5"
    assert words("en").percent(0.001) == "<1%"
    assert words("fr").percent(0.5) == "50\u202f%"
    assert words("en")("common.minutes_ago", 1) == "1 minute ago"
    assert words("fr")("common.minutes_ago", 0) == "il y a 0 minute"


def test_in_french_no_line_begins_with_a_mark_and_a_month_has_its_first() -> None:
    said = words("fr")
    every = [form for name in catalogue() for form in forms(said.texts[name])]
    assert [text for text in every if re.search(" [:;?!]", text)] == []
    assert any("\u00a0:" in text for text in every)
    now = datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert PageClock(ZoneInfo("Europe/Paris"), said, lambda: now).day(now) == "1er mars 2026"
    assert PageClock(ZoneInfo("Europe/Paris"), words("en"), lambda: now).day(now) == "1 Mar 2026"


def test_no_template_holds_words_of_its_own() -> None:
    """What is between the marks of a template is made, but for signs and commands to type."""
    own = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
    for template in TEMPLATES:
        text = own.sub(" ", Path(template).read_text("utf-8"))
        text = re.sub(r"<(script|style|code)\b.*?</\1>", " ", text, flags=re.DOTALL)
        text = re.sub(r'[\w-]+="[^"]*"', " ", text)
        said = set(re.findall(r"(?<![/\w])[A-Za-zÀ-ÿ]{2,}[\w-]*", re.sub(r"<[^>]*>", " ", text)))
        assert said == set(), template.name
