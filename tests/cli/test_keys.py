"""`clinic-gateway keys`, as a person types it; and a server that hears of it within a second."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from gateway.cli import main
from gateway.contract.access import Permission
from gateway.keys.secret import mint
from tests.command import clinic_gateway
from tests.conftest import RunningGateway
from tests.states import begin_state

CREATE = ["create", "--name", "Insurer X", "--permission", "CLIENT_READ", "--level", "BASIC"]


def keys(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return clinic_gateway("keys", *words, "--config", str(folder / "gateway.yaml"))


def run(folder: Path, *words: str) -> Result:
    """The command in this process, where words may be of any kind."""
    return CliRunner().invoke(main, ["keys", *words, "--config", str(folder / "gateway.yaml")])


def told(folder: Path, *words: str) -> Any:
    done = keys(folder, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def status(port: int, secret: str, path: str = "/api/v1/clients?limit=1") -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path, headers={"X-API-Key": secret})
    found = connection.getresponse().status
    connection.close()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gateway.yaml").write_text("state: .\n")
    return tmp_path


def test_a_permission_that_the_mapping_has_nothing_of_is_told(folder: Path) -> None:
    (folder / "gateway.yaml").write_text("state: .\nbackend: {mapping: clinic.yaml}\n")
    (folder / "clinic.yaml").write_text("resources: {clients: {from: c}, patients: {from: a}}\n")
    more = ("--permission", "INVOICE_READ", "--permission", "APPOINTMENT_CREATE")
    made = run(folder, *CREATE, *more)
    assert made.exit_code == 0
    assert [line.partition(":")[0] for line in made.stderr.splitlines()] == [
        "APPOINTMENT_CREATE",
        "INVOICE_READ",
    ]
    assert run(folder, "update", "Insurer X", "--level", "FULL").stderr == ""
    assert run(folder, "update", "Insurer X", "--permission", "PATIENT_READ").stderr == ""
    assert "STOCK_READ" in run(folder, "update", "Insurer X", "--permission", "STOCK_READ").stderr
    (folder / "clinic.yaml").write_text("resources: [\n")
    assert run(folder, "update", "Insurer X", "--permission", "STOCK_READ").stderr == ""


def test_a_key_is_bound_to_networks_and_to_bookings_a_day(folder: Path) -> None:
    networks = ("--network", "192.0.2.0/24", "--network", "2001:DB8::1")
    made = told(folder, *CREATE, "--bookings-per-day", "20", *networks)
    assert (made["bookingsPerDay"], made["networks"]) == (20, ["192.0.2.0/24", "2001:db8::1"])
    assert "192.0.2.0/24, 2001:db8::1" in keys(folder, "show", made["id"]).stdout
    kept = told(folder, "update", made["id"], "--limit", "5")
    assert (kept["bookingsPerDay"], kept["networks"]) == (20, made["networks"])
    other = told(folder, "update", made["id"], "--network", "10.0.0.0/8")
    assert (other["bookingsPerDay"], other["networks"]) == (20, ["10.0.0.0/8"])
    free = told(folder, "update", made["id"], "--no-networks", "--no-bookings-per-day")
    assert (free["bookingsPerDay"], free["networks"]) == (None, [])
    assert told(folder, "list")[0]["networks"] == []


def test_the_list_has_the_bounds_of_each_key(folder: Path) -> None:
    free = told(folder, *CREATE, "--name", "Free")
    networks = ("--network", "192.0.2.0/24", "--network", "2001:db8::1")
    bound = told(folder, *CREATE, "--name", "Bound", "--bookings-per-day", "20", *networks)
    head, *rows = (line.split("\t") for line in keys(folder, "list").stdout.splitlines())
    assert {row[0]: row[-2:] for row in rows} == {
        free["id"]: ["", ""],
        bound["id"]: ["20", "192.0.2.0/24 2001:db8::1"],
    }
    assert head[-2:] == ["bookings per day", "networks"]
    lines = [line.rstrip() for line in in_a_terminal(folder, 80).splitlines()]
    assert len(lines) == 2 + 2 + 3
    assert lines.count("20 bookings/day, 192.0.2.0/24 +1") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--network", "192.0.2.1/24"), "192.0.2.1/24 is no network: write 192.0.2.0/24"),
        (("--network", "example.org"), "write one such as 192.0.2.0/24, or an address such as"),
        (("--bookings-per-day", "0"), "0 is not in the range"),
        (tuple(f"--network=10.0.0.{n}" for n in range(101)), "name at most 100 networks"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(
    folder: Path, words: tuple[str, ...], said: str
) -> None:
    done = run(folder, *CREATE, *words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_a_key_is_made_shown_listed_changed_rotated_and_revoked(folder: Path) -> None:
    made = told(folder, *CREATE, "--scope", "patients=FULL", "--contact", "it@example.org",
        "--expires", "2127-01-31T00:00:00+01:00")  # fmt: skip
    assert list(made)[:2] == ["id", "key"]
    assert made["key"].startswith("vk_")
    assert (made["limit"], made["expiresAt"]) == (1000, "2127-01-30T23:00:00Z")
    shown = told(folder, "show", made["id"])
    assert "key" not in shown
    assert shown["scopes"] == {"patients": "FULL"}
    assert shown["secrets"][0]["hint"] == made["key"][:8]
    changed = told(folder, "update", made["id"], "--limit", "5", "--expires", "never",
        "--permission", "STOCK_READ", "--no-scopes", "--name", "Insurer Y")  # fmt: skip
    assert changed["permissions"] == ["STOCK_READ"]
    assert (changed["limit"], changed["expiresAt"], changed["scopes"]) == (5, None, {})
    rotated = told(folder, "rotate", made["id"], "--overlap", "1h")
    assert rotated["id"] == made["id"]
    assert rotated["key"] != made["key"]
    assert len(told(folder, "list")[0]["secrets"]) == 2
    assert told(folder, "revoke", "--yes", made["id"])["revokedAt"] is not None
    again = keys(folder, "list")
    assert "Insurer Y" in again.stdout
    assert "revoked" in again.stdout


def test_the_secret_is_shown_once_and_says_so(folder: Path) -> None:
    done = keys(folder, *CREATE)
    secret = next(line for line in done.stdout.splitlines() if line.startswith("vk_"))
    assert "the only time" in done.stdout
    for words in (["list"], ["list", "--json"]):
        assert secret not in keys(folder, *words).stdout
    kept = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert secret.encode() not in kept


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (
            [*CREATE, "--expires", "2020-01-01T00:00:00Z"],
            "that time is past\n",
            2,
        ),
        (["update", "x", "--expires", "2020-01-01T00:00:00Z"], "is past; to end a key, revoke", 2),
        (
            ["create", "--name", "x", "--level", "BASIC"],
            f"Missing option '--permission'. It can be {', '.join(Permission)}",
            2,
        ),
        (CREATE[:-2], "Missing option '--level'. It can be BASIC, STANDARD, FULL", 2),
        ([*CREATE, "--permission", "CLIENT_REED"], "did you mean CLIENT_READ?", 2),
        ([*CREATE, "--level", "basic"], "did you mean BASIC?", 2),
        ([*CREATE, "--scope", "client=FULL"], "did you mean clients?", 2),
        (
            [
                *CREATE,
                "--scope",
                "clients=BASIC",
                "--scope",
                "stock=FULL",
                "--scope",
                "clients=FULL",
            ],
            "'--scope': clients is named twice; give it one level",
            2,
        ),
        ([*CREATE, "--scope", "patients"], "patients must be RESOURCE=LEVEL, such as pat", 2),
        ([*CREATE, "--scope", "=FULL"], "=FULL must be RESOURCE=LEVEL, such as patients=", 2),
        (
            [*CREATE, "--scope", "patients=FULL,stock=FULL"],
            "repeat the option, one word each: --scope patients=FULL --scope stock=FULL",
            2,
        ),
        (
            [*CREATE, "--permission", "CLIENT_READ,PATIENT_READ"],
            "one word each: --permission CLIENT_READ --permission PATIENT_READ",
            2,
        ),
        (["update", "x", "--scope", "stock=FULL", "--scope", "stock=FULL"], "stock is named", 2),
        ([*CREATE, "--limit", "0"], "--limit", 2),
        ([*CREATE, "--expires", "tomorrow"], "such as 2027-01-31T00:00:00Z", 2),
        ([*CREATE, "--expires", "2036-13-01"], "there is no month 13", 2),
        ([*CREATE, "--expires", "2036-13-01T00:00:00Z"], "there is no month 13", 2),
        ([*CREATE, "--expires", "2035-02-29T00:00:00Z"], "there is no day 29 in 2035-02", 2),
        ([*CREATE, "--expires", "2036-01-01"], "write it with its offset", 2),
        (
            ["update", "x", "--no-networks", "--network", "192.0.2.0/24"],
            "--no-networks and --network contradict each other: name one of them",
            2,
        ),
        (
            ["update", "x", "--no-scopes", "--scope", "stock=FULL"],
            "--no-scopes and --scope contradict each other",
            2,
        ),
        (
            ["update", "x", "--no-bookings-per-day", "--bookings-per-day", "4"],
            "--no-bookings-per-day and --bookings-per-day contradict each other",
            2,
        ),
        ([*CREATE, "--name", "  "], "1 to 200 characters", 2),
        (["rotate", "x", "--overlap", "1 day"], "such as 24h", 2),
        (["update", "x"], "nothing to change", 2),
        (["show", "x"], "no key has the id or the name x", 1),
        (["update", "x", "--limit", "1"], "no key has the id or the name x", 1),
        (["revoke", "x", "--yes"], "no key has the id or the name x", 1),
        (
            ["revoke", "x"],
            "without a terminal this needs --yes: a revoked key never works again",
            2,
        ),
        (["rotate", "x"], "no key has the id or the name x", 1),
    ],
)
def test_wrong_use_is_2_and_a_no_is_1_each_with_the_remedy(
    folder: Path, words: list[str], said: str, code: int
) -> None:
    begin_state(folder / "gateway.yaml")
    done = keys(folder, *words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--name", "--contact"])
@pytest.mark.parametrize("text", ["a\x1b[2Jb", "a\nb", "a\x9bb", "a\x7fb", "a\udcffb", "a\u202eb"])
def test_what_a_terminal_obeys_is_no_part_of_a_name(folder: Path, option: str, text: str) -> None:
    for words in ([*CREATE, option, text], ["update", "x", option, text]):
        done = run(folder, *words)
        assert (done.exit_code, done.stdout) == (2, "")
        said = f"'{option}': write it without control characters, in one line\n"
        assert done.stderr.endswith(said)


def test_a_name_in_any_writing_is_kept(folder: Path) -> None:
    for name in ("Clinique l'Étoile", "动物医院", "क\u200dष", "🐕\u200d🦺"):
        told(folder, "create", "--name", name, *CREATE[3:])
        assert told(folder, "list")[-1]["name"] == name


def test_a_name_that_is_stored_already_is_shown_without_control_characters(folder: Path) -> None:
    made = told(folder, *CREATE, "--contact", "x")
    name = "A\x1b]0;B\x07\r\nC\x9b2J\u202eD\x7f"
    with sqlite3.connect(folder / "gateway.db") as store:
        store.execute("UPDATE keys SET name = ?, contact = ?", (name, name))
    for words in (
        ["list"],
        ["show", made["id"]],
        ["list", "--json"],
        ["show", made["id"], "--json"],
    ):
        printed = run(folder, *words).stdout
        assert "A" in printed
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", printed)
    assert told(folder, "show", made["id"])["contact"] == name


def test_the_state_folder_is_made_by_a_start_and_an_empty_list_says_so(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text("state: deep/state\n")
    place = tmp_path / "deep" / "state" / "gateway.db"
    assert f"there is no store at {place} yet: " in keys(tmp_path, "list").stderr
    assert not (tmp_path / "deep").exists()
    begin_state(tmp_path / "gateway.yaml")
    assert keys(tmp_path, "list").stdout.startswith(f"no keys yet in {place}; ")
    assert (tmp_path / "deep" / "state").stat().st_mode & 0o777 == 0o700
    assert told(tmp_path, "list") == []


@pytest.mark.parametrize(
    "words", [["list"], CREATE, ["show", "x"], ["update", "x", "--limit", "1"], ["rotate", "x"],
              ["revoke", "x", "--yes"]],
)  # fmt: skip
def test_where_nothing_says_where_the_keys_are_none_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["keys", *words])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"nothing says where the gateway's state is: no gateway.yaml is in {tmp_path};"
        " name the gateway's configuration with --config, or set GATEWAY_STATE or GATEWAY_STORE\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value"), [("GATEWAY_STATE", "st"), ("GATEWAY_STORE", "sqlite:///keys.db")]
)
def test_the_environment_may_say_where_the_keys_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    begin_state(None)
    result = CliRunner().invoke(main, ["keys", "list"])
    assert result.exit_code == 0, result.stderr
    assert f"no keys yet in {'sqlite:///' if '//' in value else ''}{tmp_path}/" in result.stdout


@pytest.mark.parametrize("words", [["rotate"], ["update", "--limit", "5"]])
def test_a_revoked_key_gets_no_new_secret_and_no_change(folder: Path, words: list[str]) -> None:
    made = told(folder, *CREATE)
    told(folder, "revoke", "--yes", made["id"])
    done = keys(folder, *words, made["id"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "this key was revoked, for good" in done.stderr
    assert told(folder, "show", made["id"])["limit"] == 1000
    assert "state      " in keys(folder, "show", made["id"]).stdout


@pytest.mark.parametrize(
    "words",
    [("show",), ("update", "--limit", "5"), ("rotate", "--overlap", "1h"), ("revoke", "--yes")],
)
def test_a_name_that_one_key_has_will_do_for_its_id(folder: Path, words: tuple[str, ...]) -> None:
    one = told(folder, *CREATE)["id"]
    assert told(folder, *words, "Insurer X")["id"] == one
    # a name that is another key's id is not what that id names
    told(folder, "create", "--name", one, *CREATE[3:])
    assert told(folder, "show", one)["name"] == "Insurer X"
    two = told(folder, *CREATE)["id"]
    before = keys(folder, "list", "--json").stdout
    done = keys(folder, *words, "Insurer X")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"2 keys have the name Insurer X; name one by its id: {one}, {two}\n"
    assert keys(folder, "list", "--json").stdout == before


def test_a_key_that_was_revoked_already_is_said_to_be(folder: Path) -> None:
    made = told(folder, *CREATE)
    first = keys(folder, "revoke", "--yes", made["id"], "--json")
    assert (first.returncode, first.stderr) == (0, "")
    again = keys(folder, "revoke", "--yes", made["id"], "--json")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    revoked_at = json.loads(first.stdout)["revokedAt"]
    assert again.stderr == f"this key was revoked already, at {revoked_at}\n"


def test_it_is_said_when_an_old_secret_ends_and_what_state_a_key_is_in(folder: Path) -> None:
    made = told(folder, *CREATE)
    rotated = keys(folder, "rotate", made["id"], "--overlap", "1h").stdout
    shown = keys(folder, "show", made["id"]).stdout
    changed = keys(folder, "update", made["id"], "--limit", "5").stdout
    revoked = keys(folder, "revoke", "--yes", made["id"]).stdout
    for text in (rotated, shown, changed, revoked):
        assert re.search(
            rf"secrets +{made['key'][:8]}\.\.\. until 20\S+Z, vk_\S{{5}}\.\.\.\n", text
        )
        assert re.search(rf"state +{'revoked' if text is revoked else 'active'}\n", text)
    lines = keys(folder, "list").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["id", made["id"]]


SECRET = mint()


@pytest.mark.parametrize(
    ("typed", "sound"),
    [
        (SECRET, True),
        (f"  {SECRET}\r\nmore\n", True),
        (SECRET[:-1] + ("A" if SECRET[-1] != "A" else "B"), False),
        (SECRET[:-1], False),
        ("", False),
        ("\x1b[2J", False),
        (SECRET + "A" * 100_000, False),
    ],
    ids=["whole", "between blanks", "another end", "cut off", "nothing", "control", "endless"],
)
def test_a_secret_is_verified_without_any_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, sound: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, said in (
        ([], "well formed: it can be a secret of a gateway\n" if sound else ""),
        (["--json"], f'{{"wellFormed":{str(sound).lower()}}}\n'),
    ):
        result = CliRunner().invoke(main, ["keys", "verify", *words], input=typed)
        assert (result.exit_code, result.stdout) == (0 if sound else 1, said)
        told = "" if sound else "mistyped or cut off: no gateway has made this secret\n"
        assert result.stderr == told
    assert not list(tmp_path.iterdir())


def test_a_secret_is_never_taken_from_the_command_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["keys", "verify", SECRET])
    assert result.exit_code == 2


def in_a_terminal(folder: Path, columns: int) -> str:
    """What `keys list` writes into a terminal of that width, without its colours."""
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "gateway", "keys", "list"]
    environ = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    command += ["--config", str(folder / "gateway.yaml")]
    with subprocess.Popen(command, stdout=inner, env=environ):
        os.close(inner)
        written = b""
        with suppress(OSError):  # EIO is how a terminal ends
            while read := os.read(outer, 4096):
                written += read
    os.close(outer)
    return re.sub(r"\x1b\[[0-9;]*m", "", written.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [60, pytest.param(80, marks=pytest.mark.long), 200])
def test_in_a_terminal_a_key_takes_two_lines(folder: Path, columns: int) -> None:
    scopes = ["--scope", "patients=STANDARD", "--scope", "stock=FULL"]
    every = [word for each in Permission for word in ("--permission", each)]
    options = [*every, *scopes, "--expires", "2127-01-31T00:00:00Z"]
    options += ["--name", f"Insurers {'动' * 50}"]
    made = told(folder, *CREATE, *options)
    level = "BASIC +2" if columns <= 80 else "BASIC patients=STANDARD stock=FULL"
    lines = [line.rstrip() for line in in_a_terminal(folder, columns).splitlines()]
    assert len(lines) == 4
    name = f"{'动' * (13 if columns <= 80 else 43)}…"
    assert lines[2].split() == ["Insurers", name, *level.split(), "1000", "never"]
    assert lines[3].split() == [made["id"], made["key"][:8], "until", "2127-01-31"]
    assert max(map(cell_len, lines)) <= max(columns, 80)


def test_the_help_of_the_options_says_what_they_take() -> None:
    texts = {
        each: " ".join(CliRunner().invoke(main, ["keys", each, "--help"]).stdout.split())
        for each in ("create", "update", "rotate")
    }
    for each in ("create", "update"):
        assert all(permission in texts[each] for permission in Permission)
        assert "such as 2027-01-31T00:00:00Z" in texts[each]
    assert "Requests an hour; 1000 where it is not given." in texts["create"]
    assert "where it is not given" not in texts["update"]
    assert "`never`" not in texts["create"]
    assert "`never` takes it away" in texts["update"]
    assert "All networks that it may be used from, from now on" in texts["update"]
    assert "All its levels of resources from now on" in texts["update"]
    assert "from now on" not in texts["create"]
    assert "a number and s, m, h or d, at most 90d" in texts["rotate"]


async def test_a_running_server_hears_of_every_change_within_a_second(
    running_gateway: RunningGateway,
) -> None:
    import asyncio

    folder, port = running_gateway.folder, running_gateway.port

    async def within_a_second(secret: str, expected: int) -> None:
        deadline = time.monotonic() + 1.0
        while await asyncio.to_thread(status, port, secret) != expected:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)

    made = await asyncio.to_thread(told, folder, *CREATE)
    await within_a_second(made["key"], 200)
    change = ("update", made["id"], "--permission", "STOCK_READ")
    await asyncio.to_thread(told, folder, *change)
    await within_a_second(made["key"], 403)
    rotated = await asyncio.to_thread(told, folder, "rotate", made["id"], "--overlap", "0s")
    await within_a_second(made["key"], 401)
    await within_a_second(rotated["key"], 403)
    await asyncio.to_thread(told, folder, "revoke", "--yes", made["id"])
    await within_a_second(rotated["key"], 401)


def test_a_key_that_makes_no_sense_is_named_beside_the_others(folder: Path) -> None:
    good, odd = told(folder, *CREATE), told(folder, *CREATE)
    with closing(sqlite3.connect(folder / "gateway.db")) as connection, connection:
        connection.execute("UPDATE keys SET level = 'GODLIKE' WHERE id = ?", (odd["id"],))
    listed = run(folder, "list", "--json")
    assert [each["id"] for each in json.loads(listed.stdout)] == [good["id"]]
    sentence = f"what is kept of the key {odd['id']} makes no sense here; it counts as revoked"
    assert listed.stderr.startswith(sentence)
    for command in (["show"], ["rotate"], ["revoke", "--yes"]):
        result = run(folder, *command, odd["id"])
        assert result.exit_code == 1
        assert result.stderr.startswith(sentence)
