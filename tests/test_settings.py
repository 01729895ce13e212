import asyncio
import re
from pathlib import Path

import pytest

from adapters.documents.problems import DocumentErrors
from adapters.documents.yaml_errors import FILE_CHECKS
from gateway.settings import (
    CHECKS,
    GROUPS,
    ConfigurationErrors,
    Settings,
    load_settings,
    names,
    sources,
    variable,
)
from gateway.settings.kinds import split_address
from gateway.store import open_store

SECRET = "ab" * 32


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    return file


def said(config: Path | None, environ: dict[str, str] | None = None) -> list[str]:
    """What is wrong, without the folder of the file."""
    with pytest.raises(DocumentErrors) as raised:
        load_settings(config, environ or {})
    return [str(problem).removeprefix(f"{config}:") for problem in raised.value.problems]


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(None, {})
    assert settings.listen == "0.0.0.0:8080"
    assert settings.operations_listen == "127.0.0.1:8081"
    assert settings.public_url is None
    assert settings.state == tmp_path / "state"
    assert settings.store is None
    assert settings.policy.name == "policies.yaml"
    assert settings.policy.exists()


def test_a_gateway_yaml_in_the_folder_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "listen: 127.0.0.1:9000\n")
    monkeypatch.chdir(tmp_path)
    assert load_settings(None, {}).listen == "127.0.0.1:9000"


def test_where_no_public_address_is_given_it_is_that_of_this_machine(tmp_path: Path) -> None:
    assert load_settings(written(tmp_path, "drain: 1\n"), {}).public_url_at(9) == (
        "http://127.0.0.1:9"
    )
    given = written(tmp_path, "public_url: http://127.0.0.1:0/\n")
    assert load_settings(given, {}).public_url_at(9) == "http://127.0.0.1:0"


def test_paths_are_those_of_the_file_not_of_the_caller(tmp_path: Path) -> None:
    settings = load_settings(
        written(
            tmp_path,
            "state: st\npolicy: p.yaml\nbackend:\n  url: sqlite:///clinic.db\n"
            "  mapping: m.yaml\n  secret_file: /etc/secret\n",
        ),
        {},
    )
    assert settings.state == tmp_path / "st"
    assert settings.policy == tmp_path / "p.yaml"
    assert settings.backend.mapping == tmp_path / "m.yaml"
    assert settings.backend.secret_file == Path("/etc/secret")
    assert settings.backend.url is not None
    assert settings.backend.url.get_secret_value() == f"sqlite:///{tmp_path}/clinic.db"


def test_the_environment_counts_more_than_the_file(tmp_path: Path) -> None:
    config = written(tmp_path, "drain: 3\nbackend:\n  timeout: 1\n  adapter: sql\n")
    environ = {"GATEWAY_BACKEND_TIMEOUT": "2.5", "GATEWAY_LISTEN": "[::1]:9000", "HOME": "/"}
    settings = load_settings(config, environ)
    assert (settings.drain, settings.backend.timeout, settings.backend.adapter) == (3, 2.5, "sql")
    assert split_address(settings.listen) == ("::1", 9000)


OF_A_SERVICE = {
    "GATEWAY_PORT": "tcp://10.0.0.1:8080",
    "GATEWAY_PORT_8080_TCP": "tcp://10.0.0.1:8080",
    "GATEWAY_PORT_8080_TCP_ADDR": "10.0.0.1",
    "GATEWAY_PORT_8080_TCP_PORT": "8080",
    "GATEWAY_PORT_8080_TCP_PROTO": "tcp",
    "GATEWAY_PORT_53_UDP": "udp://10.0.0.1:53",
    "GATEWAY_SERVICE_HOST": "10.0.0.1",
    "GATEWAY_SERVICE_PORT": "8080",
    "GATEWAY_SERVICE_PORT_HTTP_API": "8080",
}


def test_what_kubernetes_tells_of_a_service_called_gateway_is_passed_over(tmp_path: Path) -> None:
    config = written(tmp_path, "drain: 3\n")
    assert load_settings(config, OF_A_SERVICE) == load_settings(config, {})
    assert OF_A_SERVICE.keys().isdisjoint(variable(name) for name, _ in names())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GATEWAY_PORT", "8080"),
        ("GATEWAY_PORT_8080", "tcp://10.0.0.1:8080"),
        ("GATEWAY_PORT_8080_TCP", "8080"),
        ("GATEWAY_PORT_8080_TCP_HOST", "10.0.0.1"),
        ("GATEWAY_PORT_HTTP_TCP_ADDR", "10.0.0.1"),
        ("GATEWAY_HOST", "10.0.0.1"),
        ("GATEWAY_SERVICE", "10.0.0.1"),
        ("GATEWAY_SERVICE_PORT", "soon"),
        ("GATEWAY_STATE_PORT", "tcp://10.0.0.1:8080"),
    ],
)
def test_every_other_variable_that_no_setting_has_is_refused(
    tmp_path: Path, name: str, value: str
) -> None:
    [problem] = said(written(tmp_path, "drain: 3\n"), {name: value})
    assert problem.startswith(f"environment variable {name}: no setting has that name")


def test_all_that_is_wrong_is_said_with_its_place_and_a_remedy(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        "listn: 127.0.0.1:1\n"
        "limiter: mysql://u:hunter2@cache\n"
        "workers: 0\n"
        "public_url: https://x.example/api/v1\n"
        "operations_listen: nowhere\n"
        "backend:\n"
        "  maping: x\n"
        "  secret: abc\n"
        "  timeout: -1\n",
    )
    problems = said(config, {"GATEWAY_LISTN": "x", "GATEWAY_DRAIN": "soon"})
    places = [re.sub(r": .*", "", problem) for problem in problems]
    assert places == [
        "1:1",
        "2:10",
        "3:10",
        "4:13",
        "5:20",
        "7:3",
        "8:11",
        "9:12",
        "environment variable GATEWAY_DRAIN",
        "environment variable GATEWAY_LISTN",
    ]
    assert problems[0].endswith("listn is not known here (did you mean listen?)")
    assert problems[1].endswith("must be memory: or an address such as redis://127.0.0.1:6379/0")
    assert "hunter2" not in str(problems)
    assert "workers: must be greater than or equal to 1" in problems[2]
    assert problems[5].endswith("(did you mean mapping?)")
    assert "64 hexadecimal digits" in problems[6]
    assert problems[9].endswith("(did you mean GATEWAY_LISTEN?)")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("listen: 99999999", "1:9: listen: must be an address such as 127.0.0.1:8080"),
        ("operations_listen: 9335", "operations_listen: must be an address such as 127.0.0.1:9335"),
        ("state: 5", "state: must be a text: put it in quotes"),
        (f"backend:\n  secret: {'12' * 32}", "2:11: secret: must be a text: put it in quotes"),
        ("workers: true", "1:10: workers: must be a whole number"),
        ("drain: true", "1:8: drain: must be a number"),
        ("in_flight: '7'", "1:12: in_flight: must be a whole number: leave the quotes out"),
        ("drain: '1.5'", "drain: must be a number: leave the quotes out"),
        ("in_flight: 7.0", "in_flight: must be a whole number"),
        ("drain: 1e999", "drain: must be a finite number"),
        ("public_url: null\ndrain: null", "2:8: drain: must be a number"),
        ("backend.mapping: x", "1:1: backend.mapping is not known here: indent mapping under back"),
        ("backend.maping: x", "indent maping under backend: (did you mean mapping?)"),
        ("mapping: x", "1:1: mapping is not known here: indent it under backend:"),
        ("back.mapping: x", "1:1: back.mapping is not known here"),
        ("drain: soon", "drain: must be a number"),
        ("workers: 1.5", "workers: must be a whole number"),
        ("drain: -1", "drain: must be greater than or equal to 0"),
        ("backend: x", "backend: must be a group of names and values"),
        (
            "trusted_proxies: 10.0.0.1, nginx",
            "1:18: trusted_proxies: nginx is no address or network such as 10.0.0.5",
        ),
        (
            "trusted_proxies: 10.0.0.1/8",
            "trusted_proxies: 10.0.0.1/8 is no address or network: write 10.0.0.0/8",
        ),
        ("trusted_proxies: 10", "trusted_proxies: must be a text"),
        ("proxy_hops: 0", "proxy_hops: must be greater than or equal to 1"),
    ],
)
def test_a_value_of_the_wrong_kind_is_said_in_plain_words(
    tmp_path: Path, text: str, problem: str
) -> None:
    assert problem in said(written(tmp_path, text))[0]


@pytest.mark.parametrize(
    "url",
    [
        "memory:",
        "redis://cache",
        "redis://cache:6379/2",
        "rediss://user:pa%20ss@cache.example:6380",
        "redis://[::1]:6379",
    ],
)
def test_where_calls_are_counted_is_an_address(tmp_path: Path, url: str) -> None:
    text = f"limiter: '{url}'\ncache:\n  url: '{url}'\n"
    settings = load_settings(written(tmp_path, text), {})
    assert settings.limiter.get_secret_value() == url
    assert settings.cache.url.get_secret_value() == url
    assert "ss@cache" not in repr(settings)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory:x",
        "memory",
        "redis:",
        "redis://",
        "redis://cache:port",
        "redis://cache:99999",
        "redis://cache/x",
        "redis://cache?db=1",
        "unix:///run/redis",
        "http://cache",
    ],
)
def test_any_other_is_refused(tmp_path: Path, url: str) -> None:
    [problem] = said(written(tmp_path, f"limiter: '{url}'\n"))
    assert problem.endswith("must be memory: or an address such as redis://127.0.0.1:6379/0")


@pytest.mark.parametrize(
    "text", ["", "- listen", "listen", "drain: 1\ndrain: 2\n", "a: &b 1", "backend: {\n"]
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    assert len(said(written(tmp_path, text))) == 1


def test_a_doubled_name_hides_no_other_problem(tmp_path: Path) -> None:
    problems = said(written(tmp_path, "drain: 1\nlisten: 1\ndrain: 2\nlisten_: 3\n"))
    assert [each.partition(" ")[0] for each in problems] == ["2:9:", "3:1:", "4:1:"]


@pytest.mark.parametrize(
    "text", ["backend: x", "backend: [a]", "listen: 1\nlisten2: 2", "state: []", "5: 6"]
)
def test_what_is_left_of_a_wrong_configuration_can_still_be_looked_at(
    tmp_path: Path, text: str
) -> None:
    config = written(tmp_path, f"{text}\npolicy: mine.yaml\n")
    with pytest.raises(ConfigurationErrors) as raised:
        load_settings(config, {"GATEWAY_BACKEND_MAPPING": "m.yaml", "GATEWAY_DRAIN": "soon"})
    assert raised.value.settings.policy == tmp_path / "mine.yaml"
    assert len(raised.value.problems) >= 2


def test_a_file_that_is_asked_for_must_be_there(tmp_path: Path) -> None:
    config = tmp_path / "none.yaml"
    assert said(config) == [" cannot be read: no such file or directory"]


def test_a_whole_number_is_a_number_and_the_environment_has_only_texts(tmp_path: Path) -> None:
    config = written(tmp_path, "drain: 3\nin_flight: 7\nbackend:\n  mapping: '5'\n")
    settings = load_settings(config, {"GATEWAY_WORKERS": "1", "GATEWAY_BODY_TIMEOUT": "2"})
    assert (settings.drain, settings.in_flight, settings.body_timeout) == (3.0, 7, 2.0)
    assert settings.backend.mapping == tmp_path / "5"


@pytest.mark.parametrize("value", ["", "  "])
def test_a_variable_that_is_empty_is_refused(tmp_path: Path, value: str) -> None:
    environ = {"GATEWAY_BACKEND_URL": value, "GATEWAY_STATE": value}
    assert said(written(tmp_path, "drain: 1\n"), environ) == [
        f"environment variable {name}: is empty: unset it or give it a value" for name in environ
    ]


def test_a_secret_stands_in_one_place(tmp_path: Path) -> None:
    config = written(tmp_path, f"backend:\n  secret: {SECRET}\n")
    problems = said(config, {"GATEWAY_BACKEND_SECRET_FILE": "x"})
    assert "give secret or secret_file, not both" in problems[0]
    assert SECRET not in problems[0]


def test_every_setting_has_a_meaning_and_a_variable_of_its_own() -> None:
    found = dict(names())
    assert all(found.values())
    assert len({variable(name) for name in found}) == len(found)
    assert found.keys() >= Settings.model_fields.keys() - GROUPS.keys()


@pytest.mark.parametrize(
    "address",
    [
        "gateway.example.org",
        "ftp://x.example",
        "https://",
        "https://x.example/ api",
        "https://é.fr",
    ],
)
def test_a_public_address_is_one_that_partners_can_follow(tmp_path: Path, address: str) -> None:
    [problem] = said(written(tmp_path, f"public_url: '{address}'\n"))
    assert problem.startswith("1:13: public_url: must be ")


@pytest.mark.parametrize("address", ["", "8080", ":8080", "host:", "host:x", "host:70000", "h:-1"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ValueError, match="such as"):
        split_address(address)


# A folder's name, and how it is written in an address.
PECULIAR, AS_ADDRESS = "a?b%20c#d é", "a%3Fb%2520c%23d%20%C3%A9"


async def made(place: str | Path) -> None:
    store = open_store(place)
    await store.migrate()
    await store.aclose()


@pytest.mark.parametrize("by_address", [False, True])
def test_a_store_may_lie_under_any_name(tmp_path: Path, by_address: bool) -> None:
    (tmp_path / PECULIAR).mkdir()
    address = f"sqlite:///{tmp_path}/{AS_ADDRESS}/gateway.db"
    asyncio.run(made(address if by_address else tmp_path / PECULIAR / "gateway.db"))
    assert [file.name for file in tmp_path.iterdir()] == [PECULIAR]
    assert [file.name for file in (tmp_path / PECULIAR).iterdir()] == ["gateway.db"]


def test_a_relative_address_is_written_as_an_address(tmp_path: Path) -> None:
    (tmp_path / PECULIAR).mkdir()
    text = "store: sqlite:///my%20keys.db\nbackend:\n  url: sqlite:///clinic.db\n"
    settings = load_settings(written(tmp_path / PECULIAR, text), {})
    folder = f"sqlite:///{tmp_path}/{AS_ADDRESS}"
    assert settings.store is not None
    assert settings.store.get_secret_value() == f"{folder}/my%20keys.db"
    assert settings.backend.url is not None
    assert settings.backend.url.get_secret_value() == f"{folder}/clinic.db"


@pytest.mark.parametrize("address", ["sqlite:///a?b", "sqlite:////srv/a.db?mode=ro", "sqlite:///?"])
def test_an_address_with_something_behind_the_path_is_refused(tmp_path: Path, address: str) -> None:
    config = written(tmp_path, f"store: '{address}'\nbackend:\n  url: '{address}'\n")
    remedy = "must end with the path; write %3F for a ? in it, and %25 for a %"
    assert said(config) == [f"1:8: store: {remedy}", f"3:8: url: {remedy}"]
    assert "environment variable GATEWAY_STORE" in said(None, {"GATEWAY_STORE": address})[0]


@pytest.mark.parametrize("address", ["https://x.example/?a=b", "postgresql://db/clinic?ssl=1"])
def test_what_another_address_holds_is_its_adapters_affair(tmp_path: Path, address: str) -> None:
    url = load_settings(written(tmp_path, f"backend:\n  url: {address}\n"), {}).backend.url
    assert url is not None
    assert url.get_secret_value() == address


def test_how_long_answers_are_remembered_is_said_per_operation(tmp_path: Path) -> None:
    config = written(tmp_path, "cache: {list_appointment_types: 10, get_client: 2}\n")
    settings = load_settings(config, {"GATEWAY_CACHE_GET_CLIENT": "3"})
    shown = {name: getattr(settings.cache, name) for name in type(settings.cache).model_fields}
    assert shown["list_appointment_types"] == 10
    assert shown["get_client"] == 3
    assert shown["get_patient"] == 0
    told = sources(config, {"GATEWAY_CACHE_GET_CLIENT": "3"})
    assert told["cache.list_appointment_types"] == "file"
    assert told["cache.get_client"] == "environment"
    assert told["cache.get_patient"] == "default"


def test_an_operation_that_is_none_and_a_time_that_is_too_long_are_refused(tmp_path: Path) -> None:
    config = written(tmp_path, "cache:\n  get_clients: 10\n  list_available_slots: 6\n")
    first, second = sorted(said(config))
    assert first.startswith("2:3: ")
    assert "get_client?" in first
    assert second.startswith("3:")
    assert "5" in second
    [problem] = said(None, {"GATEWAY_CACHE_CREATE_APPOINTMENT": "1"})
    assert "no setting has that name" in problem


@pytest.mark.parametrize(
    ("text", "file", "widening"),
    [
        ("policy: p.yaml", "p.yaml", "apply"),
        ("policy: {file: p.yaml}", "p.yaml", "apply"),
        ("policy:\n  file: p.yaml\n  widening: approve", "p.yaml", "approve"),
        ("policy: {widening: approve}", "policies.yaml", "approve"),
        ("policy: p.yaml\npolicy_widening: approve", "p.yaml", "approve"),
    ],
)
def test_the_policy_is_a_file_or_a_group(
    tmp_path: Path, text: str, file: str, widening: str
) -> None:
    config = written(tmp_path, text)
    settings = load_settings(config, {})
    assert (settings.policy.name, settings.policy_widening) == (file, widening)
    given = {name for name, source in sources(config, {}).items() if source == "file"}
    assert ("policy" in given, "policy_widening" in given) == ("p.yaml" in text, "approve" in text)
    environ = {"GATEWAY_POLICY_WIDENING": "apply", "GATEWAY_POLICY": "other.yaml"}
    assert load_settings(config, environ).policy_widening == "apply"
    assert load_settings(config, environ).policy == tmp_path / "other.yaml"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("policy:\n  widening: maybe", "2:13: policy_widening: must be 'apply' or 'approve'"),
        ("policy:\n  widning: approve", "2:3: policy.widning is not known here"),
        ("policy:\n  file: 5", "2:9: policy: must be a text: put it in quotes"),
        ("policy: [a]", "1:9: policy: "),
        ("policy: {widening: apply}\npolicy_widening: approve", "1:10: policy.widening is not "),
    ],
)
def test_what_is_wrong_in_the_policys_group_is_said_at_its_place(
    tmp_path: Path, text: str, problem: str
) -> None:
    assert said(written(tmp_path, text))[0].startswith(problem)


def test_every_problem_with_the_settings_has_a_code_and_every_code_comes_up(tmp_path: Path) -> None:
    texts = [
        "listen: nowhere\nlistn: x\nzone: Nowhere\ntrusted_proxies: nginx\nworkers: 0\n"
        "drain: soon\nbackend: {secret: abc}\n",
        "- listen\n",
        "backend: {refresh: 600, stale_after: 60}\n",
    ]
    found = set()
    for text in texts:
        with pytest.raises(DocumentErrors) as raised:
            load_settings(written(tmp_path, text), {"GATEWAY_LISTN": "x", "GATEWAY_DRAIN": ""})
        found |= {problem.code for problem in raised.value.problems}
    # every setting has a default
    assert found == CHECKS.keys() - FILE_CHECKS.keys() - {"missing-part"}
