"""What others published and we carry: each file is the one that its `vendor.toml` names."""

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.test_setup import files_in_git

NAME = "vendor.toml"


@pytest.fixture
def lists() -> dict[Path, dict[str, Any]]:
    """The packages that each list of the tree names, by the list's folder."""
    found = [file for file in files_in_git() if file.name == NAME]
    assert found
    return {file.parent: tomllib.loads(file.read_text()) for file in found}


def hashes_in(folder: Path) -> dict[str, str]:
    """Every file below the folder, with its SHA-256."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_every_folder_of_others_files_has_a_list(lists: dict[Path, Any]) -> None:
    folders = {
        Path(*file.parts[: file.parts.index("vendor") + 1])
        for file in files_in_git()
        if "vendor" in file.parts
    }
    assert folders == lists.keys()


def test_a_list_says_the_version_and_the_licence_of_each_package(
    lists: dict[Path, dict[str, Any]],
) -> None:
    for folder, packages in lists.items():
        assert packages, folder
        for name, told in packages.items():
            assert told.keys() == {"version", "licence", "files"}, name
            assert told["version"], name
            assert told["licence"], name
            assert any(file.startswith("LICENSE") for file in told["files"]), name


def test_a_folder_holds_the_listed_files_unchanged_and_no_others(
    lists: dict[Path, dict[str, Any]],
) -> None:
    for folder, packages in lists.items():
        listed = {
            f"{name}/{file}": digest
            for name, told in packages.items()
            for file, digest in told["files"].items()
        }
        found = hashes_in(folder)
        del found[NAME]
        assert found == listed
