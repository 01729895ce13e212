"""compose.yaml: it is what its specification allows, and all that it names is there."""

import hashlib
import json
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from examples.cluster import files
from examples.cluster.__main__ import cluster
from gateway.cli import COMMANDS
from gateway.settings import load_settings
from gateway.state import store_place
from tests.cluster.stack import PROXY, ROOT
from tests.command import module
from tests.wire.proxies import command

SCHEMA = Path(__file__).with_name("schema")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
ONCE, GATEWAYS = ("secrets", "databases"), ("gateway-1", "gateway-2")
# Where the service `secrets` finds the folder of each part, and where the parts find theirs.
SECRETS = {"gateway": "/etc/clinic-gateway", "postgres": "/secrets", "redis": "/secrets"}


def volumes(name: str) -> Iterator[tuple[str, str, bool]]:
    """Source, target, and whether it may be written, of all that a service mounts."""
    for each in SERVICES[name].get("volumes", ()):
        source, target, *mode = each.split(":")
        yield source, target, mode != ["ro"]


def dependencies(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SERVICES[name].get("depends_on", {})
    return found


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """What the service `secrets` makes."""
    assert files.make(tmp_path, files.Places())
    return tmp_path


def test_it_is_what_the_specification_allows() -> None:
    text = (SCHEMA / "compose-spec.json").read_bytes()
    assert hashlib.sha256(text).hexdigest() in (SCHEMA / "README.md").read_text("utf-8")
    schema = json.loads(text)
    checker = jsonschema.Draft202012Validator(schema)
    checker.check_schema(schema)
    assert [each.message for each in checker.iter_errors(COMPOSE)] == []
    wrong = {"services": {"proxy": {**SERVICES["proxy"], "port": []}}}
    assert list(checker.iter_errors(wrong))


@pytest.mark.parametrize("name", SERVICES)
def test_what_it_mounts_is_there(name: str) -> None:
    for source, _, writes in volumes(name):
        if source.startswith("./"):
            assert (ROOT / source).exists(), source
            assert not writes, f"{source} of the checkout is written"
        else:
            assert source in COMPOSE["volumes"]


def test_what_it_declares_is_used() -> None:
    mounted = {source for name in SERVICES for source, _, _ in volumes(name)}
    assert set(COMPOSE["volumes"]) <= mounted
    joined = {each for service in SERVICES.values() for each in service.get("networks", ())}
    assert joined == set(COMPOSE["networks"])


@pytest.mark.parametrize("name", SERVICES)
def test_every_part_is_closed(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    # what holds a name and no digest is at least of one major version
    assert name in ONCE + GATEWAYS or re.search(r":[0-9]+", service["image"])


def test_only_the_proxy_can_be_reached_and_from_this_machine_alone() -> None:
    published = {name: each["ports"] for name, each in SERVICES.items() if "ports" in each}
    assert published == {"proxy": ["127.0.0.1:8080:8080"]}
    assert not any(service.get("network_mode") == "host" for service in SERVICES.values())
    assert COMPOSE["networks"]["back"] == {"internal": True}
    behind = {name for name, each in SERVICES.items() if "front" not in each.get("networks", ())}
    assert behind == set(SERVICES) - {"proxy", *GATEWAYS}


def test_no_secret_stands_in_it() -> None:
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            assert not re.search("password|secret|token", variable, re.IGNORECASE) or (
                variable.endswith("_FILE") and value.startswith("/secrets/")
            )
        assert not any("password" in each.lower() for each in service.get("env_file", ()))
    assert not re.search(r"://[^/\s]*:[^/@\s]+@", (ROOT / "compose.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", ONCE)
def test_what_is_run_once_is_a_command(name: str) -> None:
    service = SERVICES[name]
    assert service["entrypoint"] == ["python", "-m", "examples.cluster"]
    assert service["command"][0] in cluster.commands
    told = module("examples.cluster", service["command"][0], "--help")
    assert told.returncode == 0
    for option in service["command"][1:]:
        assert not option.startswith("--") or option in told.stdout
    # the package is found where the checkout's folder is mounted
    [target] = [target for source, target, _ in volumes(name) if source == "./examples"]
    assert Path(target) == Path(service["environment"]["PYTHONPATH"], "examples")


@pytest.mark.parametrize("name", GATEWAYS)
def test_a_gateway_finds_its_files(name: str, secrets: Path) -> None:
    service = SERVICES[name]
    image = (ROOT / "Dockerfile").read_text("utf-8")
    [words] = re.findall(r"^CMD (\[.*\])$", image, re.MULTILINE)
    serve, option, config = json.loads(words)
    assert (serve in COMMANDS, option) == (True, "--config")
    assert "command" not in service
    mounted = {target: source for source, target, _ in volumes(name)}
    assert mounted[str(Path(config).parent)] == "gateway-secrets"
    assert mounted["/state"] == f"{name}-state"
    settings = load_settings(secrets / "gateway" / Path(config).name, {"GATEWAY_STATE": "/state"})
    for path in (settings.policy, settings.backend.mapping):
        assert path is not None
        assert (ROOT / mounted["/practice"] / path.relative_to("/practice")).exists()
    assert settings.backend.secret_file == secrets / files.SEALING
    assert (settings.nodes, settings.workers) == (len(GATEWAYS), 2)
    hosts = (str(store_place(settings)), settings.limiter.get_secret_value())
    assert [re.findall(r"@(\w+):", each)[0] for each in hosts] == ["postgres", "redis"]


def test_a_gateway_has_the_time_to_end(secrets: Path) -> None:
    settings = load_settings(secrets / files.CONFIGURATION, {})
    longest = settings.shutdown_delay + 2 * settings.drain
    for name in GATEWAYS:
        assert float(SERVICES[name]["stop_grace_period"].removesuffix("s")) > longest
        assert settings.connections + 200 <= SERVICES[name]["ulimits"]["nofile"]


def test_the_proxy_is_whom_the_gateways_trust_and_finds_them(secrets: Path) -> None:
    settings = load_settings(secrets / files.CONFIGURATION, {})
    proxy, text = SERVICES["proxy"], PROXY.read_text("utf-8")
    assert settings.trusted_proxies == proxy["networks"]["front"]["ipv4_address"]
    for number, name in enumerate(GATEWAYS, 1):
        address = SERVICES[name]["networks"]["front"]["ipv4_address"]
        check = settings.operations_listen.rpartition(":")[2]
        server = f"server node-{number} {address}{settings.listen[-5:]}"
        assert f"    {server} check port {check}\n" in text
        assert text.count(server) == 4
    assert f"    bind :{proxy['ports'][0].rpartition(':')[2]}\n" in text
    [(shipped, target, _)] = volumes("proxy")
    assert ((ROOT / shipped).resolve(), Path(target).name) == (PROXY, "haproxy.cfg")


def test_the_proxy_takes_its_configuration() -> None:
    words = [*command("haproxy", PROXY), "-c"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


def test_each_part_starts_after_what_it_needs() -> None:
    for name in SERVICES:
        for other, told in dependencies(name).items():
            wanted = "service_completed_successfully" if other in ONCE else "service_healthy"
            if name == "proxy":
                wanted = "service_started"
            assert told["condition"] == wanted
            assert wanted != "service_healthy" or "healthcheck" in SERVICES[other]
    assert {"secrets", "postgres", "redis", "databases"} <= before("gateway-1")
    assert before("gateway-1") == before("gateway-2")
    assert "secrets" in before("databases")


def before(name: str) -> set[str]:
    """All that is there before it; a circle does not end."""
    direct = set(dependencies(name))
    return direct.union(*(before(each) for each in direct))


def test_whoever_reads_a_secret_is_its_owner() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    assert f"USER {files.READERS['gateway']}:" in image
    for part in ("postgres", "redis"):
        assert SERVICES[part]["user"].split(":")[0] == str(files.READERS[part])
    where = {source: target for source, target, _ in volumes("secrets")}
    for part, target in SECRETS.items():
        assert where[f"{part}-secrets"] == f"/secrets/{part}"
        name = "gateway-1" if part == "gateway" else part
        mounted = {source: (there, writes) for source, there, writes in volumes(name)}
        assert mounted[f"{part}-secrets"] == (target, False)
        assert not [each for each in mounted if each.endswith("-secrets") and part not in each]


def test_secrets_are_made_once_and_for_their_readers_alone(secrets: Path) -> None:
    made = {path: (secrets / path).read_bytes() for path in (files.REDIS, files.CONFIGURATION)}
    for path in (*made, files.SUPERUSER, files.SEALING):
        assert stat.S_IMODE((secrets / path).stat().st_mode) == 0o400
    assert not files.make(secrets, files.Places())
    assert made == {path: (secrets / path).read_bytes() for path in made}
    password = re.findall(b"^requirepass (.*)$", made[files.REDIS], re.MULTILINE)[0]
    assert made[files.CONFIGURATION].count(password) == 2


def test_secrets_of_which_one_is_gone_are_not_made_anew(secrets: Path) -> None:
    (secrets / files.SEALING).unlink()
    done = module("examples.cluster", "secrets", str(secrets))
    assert done.returncode == 1
    assert "gateway/sealing.secret is gone" in done.stderr
    assert not (secrets / files.SEALING).exists()


def test_a_start_that_was_cut_off_is_done_over(secrets: Path) -> None:
    (secrets / files.CONFIGURATION).unlink()
    assert files.make(secrets, files.Places())
    load_settings(secrets / files.CONFIGURATION, {})
