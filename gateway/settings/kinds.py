"""The types of setting values and their checks: addresses, databases, durations and secrets."""

import re
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from adapters.documents.problems import Misfit


def split_address(text: str) -> tuple[str, int]:
    """Returns host and port of `host:port` or `[::1]:port`; raises ValueError for other texts."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise Misfit("bad-address", "must be an address such as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches that host."""
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _address(value: Any) -> Any:
    if type(value) is int:
        port = value if 0 < value <= 65535 else 8080
        raise Misfit("bad-address", f"must be an address such as 127.0.0.1:{port}")
    if isinstance(value, str):
        split_address(value)
    return value


def split_networks(text: str) -> tuple[str, ...]:
    """Returns the addresses and networks between commas; raises ValueError for anything else."""
    networks = tuple(word.strip() for word in text.split(",") if word.strip())
    for network in networks:
        try:
            ip_network(network)
        except ValueError as error:
            remedy = " such as 10.0.0.5"
            if "has host bits set" in str(error):
                remedy = f": write {ip_network(network, strict=False)}"
            raise Misfit("bad-network", f"{network} is no address or network{remedy}") from error
    return networks


def split_hosts(text: str) -> tuple[str, ...]:
    """Returns the host names between commas, in lower case; raises ValueError for a wrong one."""
    hosts = tuple(host.strip().lower() for host in text.split(",") if host.strip())
    for host in hosts:
        if not re.fullmatch("[a-z0-9._-]+", host):
            raise Misfit("bad-network", f"{host} is no host name: write it without scheme and port")
    return hosts


def _web_address(text: str, such_as: str, refused: str = "") -> str:
    """Returns an address without its scheme and last slashes; raises ValueError for a wrong one."""
    scheme, _, rest = text.partition("://")
    rest = rest.rstrip("/")
    if scheme not in {"http", "https"} or not rest or set(rest) & {*" <>\"'\\?#\r\n\t", *refused}:
        raise Misfit("bad-address", f"must be {such_as}")
    if not text.isascii() or not text.isprintable():
        raise Misfit("bad-address", "must be written in ASCII")
    return rest


def _panel_url(text: str) -> str:
    such_as = "an address such as https://panel.clinic.example, without a path"
    host = _web_address(text, such_as, "/@")
    return f"{text.partition('://')[0]}://{host.lower()}"


def _public_url(text: str) -> str:
    _web_address(text, "an address such as https://gateway.example.org, without /api/v1")
    bare = text.rstrip("/")
    if bare.endswith("/api/v1"):
        raise Misfit("bad-address", "must not end in /api/v1: that is added")
    return bare


def _collector(text: str) -> str:
    rest = _web_address(text, "a collector's address, such as http://127.0.0.1:4318", "@")
    return f"{text.partition('://')[0]}://{rest if '/' in rest else f'{rest}/v1/traces'}"


def read_zone(text: str) -> str:
    """Returns the name of a time zone that exists; raises ValueError for any other text."""
    try:
        return ZoneInfo(text).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        said = f"no time zone is called {text}; write one such as Europe/Paris"
        raise Misfit("unknown-zone", said) from error


def _database(address: SecretStr) -> SecretStr:
    """Returns a database address; raises ValueError for one of SQLite that has a query."""
    text = address.get_secret_value()
    if text.startswith("sqlite") and "?" in text:
        said = "must end with the path; write %3F for a ? in it, and %25 for a %"
        raise Misfit("bad-address", said)
    return address


def _shared_memory(address: SecretStr) -> SecretStr:
    """Returns `memory:` or the address of a Redis; raises ValueError for any other."""
    parts = urlsplit(address.get_secret_value())
    if parts.geturl() == "memory:":
        return address
    try:
        is_redis = parts.scheme in {"redis", "rediss"} and parts.hostname and not parts.query
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        is_redis = has_port = False
    if not is_redis or not has_port or not re.fullmatch("(/[0-9]*)?", parts.path):
        said = "must be memory: or an address such as redis://127.0.0.1:6379/0"
        raise Misfit("bad-address", said)
    return address


def secret_of(text: str) -> SecretStr:
    """Returns the text as a secret, which is masked wherever it is shown."""
    return SecretStr(text)


def secret_text(secret: SecretStr | None) -> str:
    """Returns the text of a secret, which is empty where there is none."""
    return secret.get_secret_value() if secret else ""


def read_sealing_secret(text: str) -> bytes:
    """Returns the 32 bytes of 64 hexadecimal digits; raises ValueError for any other text."""
    with suppress(ValueError):
        if len(secret := bytes.fromhex(text.strip())) == 32:
            return secret
    said = "must be 64 hexadecimal digits, such as `openssl rand -hex 32` prints"
    raise Misfit("bad-secret", said)


def _sealing(secret: SecretStr) -> SecretStr:
    read_sealing_secret(secret.get_secret_value())
    return secret


Address = Annotated[str, BeforeValidator(_address)]
OptionalAddress = Annotated[str, BeforeValidator(lambda it: it if it == "" else _address(it))]
PanelUrl = Annotated[str, AfterValidator(_panel_url)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]
Collector = Annotated[str, AfterValidator(_collector)]
Zone = Annotated[str, AfterValidator(read_zone)]
Networks = Annotated[str, AfterValidator(lambda text: ", ".join(split_networks(text)))]
Hosts = Annotated[str, AfterValidator(lambda text: ", ".join(split_hosts(text)))]
Database = Annotated[SecretStr, AfterValidator(_database)]
SealingSecret = Annotated[SecretStr, AfterValidator(_sealing)]
Counting = Annotated[SecretStr, AfterValidator(_shared_memory)]
Seconds = Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]
Patience = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
