"""`clinic-gateway proxy`: its files fit the settings, their programs take them, and are shipped."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from tests.edge.shipped import EXAMPLES, WORDS, printed
from tests.wire.proxies import certify, command

PROGRAMS = ("haproxy", "nginx")
HERE = {"public_url": "https://gateway.example.org", "trusted_proxies": "127.0.0.1"}
THERE = HERE | {
    "operations_listen": "0.0.0.0:8081",
    "trusted_proxies": "10.0.0.5",
    "nodes": 3,
    "store": "postgresql://gateway:secret@10.0.0.9/gateway",
    "limiter": "redis://10.0.0.9:6379",
}
THREE = ("--node", "a=10.0.0.1", "--node", "b=10.0.0.2:9080", "--node", "c=[fd00::3]:9080/9081")
IPV6 = {"listen": "[::1]:8080", "operations_listen": "[::1]:8081", "trusted_proxies": "::1"}


def run(folder: Path, program: str, settings: Mapping[str, Any], *words: str) -> Result:
    config = folder / "gateway.yaml"
    config.write_text(json.dumps(settings))
    return CliRunner().invoke(main, ["--config", str(config), "proxy", program, *words])


@pytest.mark.parametrize("name", WORDS)
def test_the_files_of_the_examples_are_what_the_command_prints(name: str) -> None:
    assert (EXAMPLES / name).read_text("utf-8") == printed(name), "`make tables` writes it anew"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (HERE, ()),
        (THERE, THREE),
        (HERE | {"public_url": "http://127.0.0.1:9000"}, ()),
        (HERE | IPV6, ("--listen", "[::1]:9443")),
        (HERE, ("--listen", "[::]:9443")),
        (HERE | {"proxy_hops": 2, "trusted_proxies": "127.0.0.1, 10.0.0.7"}, ()),
        (HERE | {"listen": "10.0.0.7:8080"}, ()),
    ],
    ids=["one", "three", "no TLS", "IPv6", "every address", "hops", "elsewhere"],
)
def test_its_program_takes_the_file(
    program: str, settings: Mapping[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(tmp_path, program, settings, *words)
    assert (done.exit_code, done.stderr) == (0, "")
    certify(tmp_path)
    text = done.stdout.replace("/etc/clinic-gateway/", f"{tmp_path}/")
    for place in ("/run/", "/var/log/nginx/"):
        text = text.replace(place, f"{tmp_path}/")
    file = tmp_path / "file"
    file.write_text(text)
    check = [*command(program, file), "-c" if program == "haproxy" else "-t"]
    if program == "nginx":
        check = [each for each in check if each not in {"-g", "daemon off;"}]
    taken = subprocess.run(check, capture_output=True, text=True, check=False)
    assert taken.returncode == 0, taken.stderr
    assert not re.search("warn|alert|emerg", taken.stderr, re.IGNORECASE), taken.stderr


def test_the_nodes_are_asked_on_their_operations_port(tmp_path: Path) -> None:
    text = run(tmp_path, "haproxy", THERE, *THREE).stdout
    for line in (
        "    server a 10.0.0.1:8080 check port 8081\n",
        "    server b 10.0.0.2:9080 check port 8081\n",
        "    server c [fd00::3]:9080 check port 9081\n",
    ):
        assert text.count(line) == 2, line
        assert text.count(line.partition(" check")[0] + "\n") == 2, "where none is ready"
    elsewhere = run(tmp_path, "haproxy", HERE | {"listen": "10.0.0.7:8080"}).stdout
    assert "server gateway 10.0.0.7:8080 check addr 127.0.0.1 port 8081\n" in elsewhere


BOUNDS = {
    "workers": 3,
    "connections": 500,
    "connections_per_address": 20,
    "body_timeout": 30,
    "booking_wait": 7,
    "backend": {"timeout": 6.5, "booking_timeout": 20},
}


def test_bounds_and_times_are_those_of_the_settings(tmp_path: Path) -> None:
    haproxy = run(tmp_path, "haproxy", THERE | BOUNDS, *THREE).stdout
    nginx = run(tmp_path, "nginx", THERE | BOUNDS, *THREE).stdout
    processes = 3 * 3
    assert f"\n    maxconn {500 * processes}\n" in haproxy
    assert f"worker_connections {2 * 500 * processes + 100};" in nginx
    assert f"{{ sc0_conn_cur(callers) gt {20 * processes} }}" in haproxy
    assert f"limit_conn callers {20 * processes};" in nginx
    # later than the gateway, so that what takes too long gets its answer and not the proxy's
    client, *servers = seconds(haproxy, "timeout (?:client|server)")
    assert client == seconds(nginx, "client_body_timeout")[0]
    assert client > 30
    read, booking = min(servers), max(servers)
    assert read > 6.5 + 2
    assert booking > 30 + 7 + 20 + 2
    assert seconds(nginx, "proxy_read_timeout") == [booking]
    # sooner than the gateway closes what is idle
    assert set(seconds(haproxy, "pool-purge-delay")) == {8}
    assert seconds(nginx, r"keepalive_timeout")[0] == 8


def seconds(text: str, name: str) -> list[int]:
    return [int(each) for each in re.findall(rf"\b{name} (\d+)s", text)]


def test_behind_other_proxies_it_adds_by_whom_it_was_called(tmp_path: Path) -> None:
    settings = HERE | {"proxy_hops": 2, "trusted_proxies": "127.0.0.1, 10.0.0.7"}
    for program, adds, counts in (
        ("haproxy", '"%[req.fhdr(X-Forwarded-For)], %[src]"', "sc0"),
        ("nginx", "$proxy_add_x_forwarded_for", "limit_conn"),
    ):
        text = run(tmp_path, program, settings).stdout
        assert adds in text
        assert counts not in text, "the callers' connections are the first proxy's to count"
        alone = run(tmp_path, program, HERE).stdout
        assert adds not in alone
        assert counts in alone


@pytest.mark.parametrize(
    ("changes", "words", "said"),
    [
        ({"public_url": None}, (), "public_url is not set"),
        ({"public_url": "https://example.org/gateway"}, (), "public_url has a path"),
        (
            {"public_url": "https://example.org:99999"},
            (),
            "public_url is https://example.org:99999",
        ),
        ({"public_url": "https://[::1"}, (), "public_url is https://[::1, which names no host"),
        ({"listen": "127.0.0.1:0"}, (), "listen is 127.0.0.1:0, which takes any free port"),
        ({"tls_certificate": "a.crt", "tls_key": "a.key"}, (), "tls_certificate is set"),
        ({"trusted_proxies": None}, (), "trusted_proxies is empty"),
        ({"trusted_proxies": "10.0.0.5"}, (), "trusted_proxies does not name 127.0.0.1"),
        (IPV6 | {"trusted_proxies": "10.0.0.5"}, (), "trusted_proxies does not name ::1"),
        ({}, ("--node", "a=10.0.0.1"), "operations_listen is 127.0.0.1:8081, which the proxy"),
        (
            {"listen": "127.0.0.1:8080", "operations_listen": "0.0.0.0:8081"},
            ("--node", "a=10.0.0.1"),
            "listen is 127.0.0.1:8080, which the proxy cannot reach on a: listen on 0.0.0.0:8080",
        ),
        (THERE, ("--node", "a=10.0.0.1"), "nodes is 3, but 1 node is named"),
        (THERE | {"nodes": 1}, THREE, "nodes is 1, but 3 nodes are named"),
        (THERE | {"limiter": "memory:"}, THREE, "limiter is memory:"),
        (THERE | {"store": None}, THREE, "store is a file on one machine"),
        (THERE | {"nodes": 2}, ("--node", "a=10.0.0.1", "--node", "a=10.0.0.2"), "a is the name"),
        ({"public_url": "http://127.0.0.1:8080"}, (), "port 8080 is already used by gateway"),
    ],
)
def test_settings_that_cannot_work_behind_a_proxy_are_refused_with_the_remedy(
    changes: Mapping[str, Any], words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    settings = {name: value for name, value in (HERE | changes).items() if value is not None}
    for program in PROGRAMS:
        done = run(tmp_path, program, settings, *words)
        assert (done.exit_code, done.stdout) == (1, "")
        [line] = done.stderr.splitlines()
        assert line.startswith(said)
        assert ": " in line, "what to do about it"


def test_all_that_is_in_the_way_is_said_at_once(tmp_path: Path) -> None:
    done = run(tmp_path, "haproxy", {"nodes": 2})
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 3


@pytest.mark.parametrize(
    ("settings", "words", "said"),
    [
        (HERE | {"public_url": "http://gateway.example.org"}, (), "in the clear"),
        (THERE | {"shutdown_delay": 0}, THREE, "shutdown_delay is 0"),
    ],
)
def test_what_is_better_changed_is_warned_of(
    settings: Mapping[str, Any], words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = run(tmp_path, "haproxy", settings, *words)
    assert done.exit_code == 0
    [line] = done.stderr.splitlines()
    assert line.startswith("warning: ")
    assert said in line
    told = json.loads(run(tmp_path, "haproxy", settings, *words, "--json").stdout)
    assert told == {
        "program": "haproxy",
        "warnings": [line.removeprefix("warning: ")],
        "configuration": done.stdout,
    }


def wrong() -> Iterator[tuple[str, ...]]:
    for node in (
        "a",
        "a=",
        "=b",
        "a=b:0",
        "a=b:65536",
        "a=b:1/",
        "a b=c",
        "a=b\n",
        "a=b c",
        "a=$x",
    ):
        yield ("--node", node)
    for listen in ("443", ":0443x", "a b:1", ":99999", "{x}:1"):
        yield ("--listen", listen)
    for path in ("relative.pem", "/a b", "/a;b", "/a\n", "/a$b", '/"', "/a#"):
        yield ("--certificate", path)


@pytest.mark.parametrize("words", list(wrong()), ids=repr)
def test_what_would_not_stay_one_word_of_the_file_is_wrong_use(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    for program in PROGRAMS:
        done = run(tmp_path, program, HERE, *words)
        assert (done.exit_code, done.stdout) == (2, ""), done.output
        assert words[0] in done.stderr


def test_a_certificate_that_would_not_be_used_is_wrong_use(tmp_path: Path) -> None:
    settings = HERE | {"public_url": "http://127.0.0.1:9000"}
    done = run(tmp_path, "nginx", settings, "--key", "/etc/own.key")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--key needs a public_url that begins with https://" in done.stderr


def test_the_files_of_tls_are_those_that_are_named(tmp_path: Path) -> None:
    haproxy = run(tmp_path, "haproxy", HERE, "--certificate", "/etc/own.pem").stdout
    assert " ssl crt /etc/own.pem " in haproxy
    words = ("--certificate", "/etc/own.crt", "--key", "/etc/own.key")
    nginx = run(tmp_path, "nginx", HERE, *words).stdout
    assert "ssl_certificate /etc/own.crt;" in nginx
    assert "ssl_certificate_key /etc/own.key;" in nginx
