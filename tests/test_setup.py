"""The set-up says the same thing everywhere, and nothing of the machine it was made on."""

import json
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import gateway
from gateway.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
LOCKS = [f"requirements{part}.lock" for part in ("", "-dev", "-build", "-semgrep")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# Put together here, so that this file does not hold what it looks for.
INDEXES = ["py" + "pi.org", "python" + "hosted.org", "registry." + "npmjs", "deb." + "debian.org"]
OF_THIS_MACHINE = re.compile(
    r"(?<![\w.~-])/(?:home/[a-z]|Users/[A-Za-z]|root/)"
    r"|--(?:extra-)?index[-]url[ =]|--find[-]links[ =]|^\s*registry\s*=\s*http"
    r"|" + "|".join(re.escape(host) for host in INDEXES),
    re.MULTILINE,
)


def files_in_git() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("this tree is no git checkout")
    names = subprocess.run(
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    files = [ROOT / name for name in names.split("\0") if name]
    return [file for file in files if file.is_file()]


def name_of(requirement: str) -> str:
    """The normal form of the name that a requirement begins with."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def locked(lock: str) -> dict[str, str]:
    """Each locked requirement with its hashes, by name."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name_of(line): line for line in lines}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, each with its rest."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    joined = text.replace("\\\n", " ").splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined if line)]


def rests(instruction: str) -> list[str]:
    return [rest for word, rest in instructions() if word == instruction]


def test_no_file_holds_an_index_address_or_a_path_of_one_machine() -> None:
    found = {
        str(file.relative_to(ROOT)): hit[0]
        for file in files_in_git()
        if (hit := OF_THIS_MACHINE.search(file.read_text(errors="ignore")))
    }
    assert found == {}


def test_the_version_is_the_same_everywhere() -> None:
    assert PROJECT["project"]["version"] == gateway.__version__ == version("clinic-gateway")


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_requirement_is_one_version_with_hashes(lock: str) -> None:
    pinned = re.compile(r"[a-z0-9._-]+==\S+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*")
    loose = [line for line in locked(lock).values() if not pinned.fullmatch(line)]
    assert loose == []


def test_no_lock_holds_an_address() -> None:
    locks = [each for each in files_in_git() if re.search(r"(\.|-)lock(\.json)?$", each.name)]
    assert {each.name for each in locks} >= {*LOCKS, "package-lock.json"}
    found = [address for each in locks for address in re.findall(r"\S*://\S*", each.read_text())]
    assert found == [], "`make lock` leaves them out"


def test_every_package_of_npm_is_locked_with_its_hash() -> None:
    [lock] = [each for each in files_in_git() if each.name == "package-lock.json"]
    packages = json.loads(lock.read_text())["packages"]
    loose = [name for name, each in packages.items() if name and "integrity" not in each]
    assert len(packages) > 1
    assert loose == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_says_how_it_is_made_anew(lock: str) -> None:
    assert "make lock" in (ROOT / lock).read_text().partition("==")[0]


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("requirements.lock", PROJECT["project"]["dependencies"]),
        ("requirements-dev.lock", PROJECT["project"]["optional-dependencies"]["test"]),
        ("requirements-dev.lock", PROJECT["project"]["optional-dependencies"]["dev"]),
        ("requirements-build.lock", PROJECT["dependency-groups"]["build"]),
        ("requirements-build.lock", PROJECT["build-system"]["requires"]),
    ],
    ids=["runtime", "test", "dev", "build", "build-system"],
)
def test_what_the_project_asks_for_is_locked(lock: str, requirements: list[str]) -> None:
    asked = {name_of(requirement) for requirement in requirements} - {"clinic-gateway"}
    assert asked - locked(lock).keys() == set()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-build.lock"])
def test_the_lock_for_development_holds_the_others_unchanged(lock: str) -> None:
    assert locked(lock).items() <= locked("requirements-dev.lock").items()


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    targets = set(phony[1].split()) - {"stale"}
    told = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert set(re.findall(r"^make (\S+) +\S", told, re.MULTILINE)) == targets


def test_the_image_is_made_in_two_stages() -> None:
    first, second = rests("FROM")
    assert first == f"{second} AS build"


def test_the_image_installs_by_hash_and_builds_nothing_but_this_project() -> None:
    installs = [rest for rest in rests("RUN") if " install " in f"{rest} " and "pip" in rest]
    from_locks = [rest for rest in installs if "-r requirements" in rest]
    of_the_project = [rest for rest in installs if rest not in from_locks]
    assert len(from_locks) == 2
    assert all("--require-hashes" in rest for rest in from_locks)
    assert all("--only-binary :all:" in rest for rest in from_locks)
    assert [rest.partition(" install ")[2] for rest in of_the_project] == [
        "--no-deps /opt/wheels/*.whl"
    ]


def test_the_image_does_not_run_as_root() -> None:
    assert rests("USER") == ["10001:10001"]
    after = [word for word, _ in instructions()][::-1]
    assert "RUN" not in after[: after.index("USER")]


def test_the_image_lets_out_the_port_for_partners_alone() -> None:
    [port] = rests("EXPOSE")
    assert Settings().listen.endswith(f":{port}")
    assert Settings().operations_listen.startswith("127.0.0.1:")


def test_the_image_checks_its_own_health_without_a_shell() -> None:
    [health] = rests("HEALTHCHECK")
    command = json.loads(health.partition("CMD ")[2])
    assert command[:2] == ["python", "-c"]
    assert "127.0.0.1" in command[2]
    assert "/healthz" in command[2]
    compile(command[2], "healthcheck", "exec")


def test_what_the_image_copies_is_let_into_its_build() -> None:
    let_in = {line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = {
        f"!{source}"
        for rest in rests("COPY")
        if not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert copied == let_in


def test_the_wheel_is_made_of_files_that_the_image_copies() -> None:
    sources = " ".join(rests("COPY"))
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = [*wheel["packages"], *wheel["force-include"], "pyproject.toml", "README.md", "LICENSE"]
    assert [name for name in needed if name not in sources.split()] == []


@pytest.mark.parametrize("script", [".ci/run", "scripts/rehearse-image", "scripts/find-python"])
def test_a_script_can_be_run_and_parses(script: str) -> None:
    shell = "sh" if script == "scripts/find-python" else "bash"
    assert (ROOT / script).stat().st_mode & 0o111
    subprocess.run([shell, "-n", str(ROOT / script)], check=True)


def test_an_installation_says_beforehand_that_it_takes_long() -> None:
    lines = (ROOT / "Makefile").read_text().splitlines()
    before = [lines[at - 1] for at, line in enumerate(lines) if "-r requirements" in line]
    told = '\t@echo "Installing into $(VENV); this takes some minutes"'
    assert before.count(told) == 2
