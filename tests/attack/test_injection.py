"""The harness finds a hole where there is one, and leaves no place of the interface out."""

import json
import shutil
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from attack import injection
from attack.injection import Place, answered, attacked, places, request, tried
from gateway.contract.operations import OPERATIONS

NEEDS_SQLMAP = pytest.mark.skipif(shutil.which("sqlmap") is None, reason="needs sqlmap")
NAMES = ("Martin", "Petit", "Moreau")


class Open(BaseHTTPRequestHandler):
    """Puts a search into its statement as text, or binds it, as its server says."""

    def do_GET(self) -> None:
        searched = parse_qs(urlsplit(self.path).query).get("search", [""])[0]
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE clients (name TEXT)")
        database.executemany("INSERT INTO clients VALUES (?)", [(each,) for each in NAMES])
        try:
            if self.server.bound:  # type: ignore[attr-defined]
                found = database.execute("SELECT name FROM clients WHERE name = ?", [searched])
            else:
                found = database.execute(f"SELECT name FROM clients WHERE name = '{searched}'")
            status, body = 200, json.dumps(found.fetchall()).encode()
        except sqlite3.Error:
            status, body = 400, b"{}"
        database.close()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving(*, bound: bool) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Open)
    server.bound = bound  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@NEEDS_SQLMAP
@pytest.mark.parametrize(("bound", "verdict"), [(False, "INJECTABLE"), (True, "not injectable")])
def test_a_statement_made_of_text_is_found_and_one_that_binds_is_not(
    tmp_path: Path, bound: bool, verdict: str
) -> None:
    with serving(bound=bound) as port:
        text = request("GET", port, "/?search=Martin*", {})
        found = tried(Place("clients search", text), tmp_path, 60, "--technique=B", "--level=2")
    assert found.verdict.startswith(verdict)


@NEEDS_SQLMAP
def test_what_does_not_come_to_its_end_is_no_pass(tmp_path: Path) -> None:
    found = tried(Place("nobody", request("GET", 1, "/?search=x*", {})), tmp_path, 60)
    assert (found.done, found.verdict) == (False, "NOT DONE in its time")
    found = tried(Place("nobody", request("GET", 1, "/?search=x*", {})), tmp_path, 0.01)
    assert not found.done


def test_a_place_whose_request_is_refused_anyway_stops_the_attack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(injection, "answered", lambda *_: (400, "", b""))
    with pytest.raises(ValueError, match="not as it should be: 400"):
        attacked([Place("clients search", "GET / HTTP/1.1\nHost: x\n\n")], 1, 1)


def test_every_parameter_path_and_member_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    link = '<http://x/?cursor=abc>; rel="next"'
    monkeypatch.setattr(injection, "answered", lambda *_: (200, link, b""))
    made = {each.name: each.text for each in places(1, "vk_x", defaultdict(lambda: "some"))}
    for operation in OPERATIONS:
        parameters = [each.name for each in operation.query]
        members = [each.name for each in operation.body or ()]
        path = ["path"] if "{" in operation.path else []
        for name in [*parameters, *members, *path]:
            assert f"{operation.id} {name}" in made
    assert all(text.count("*") == 1 for text in made.values())
    assert answered is not injection.answered
