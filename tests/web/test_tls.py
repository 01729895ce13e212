import asyncio
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.settings import StartRefused
from gateway.web import tls
from gateway.web.connection import LARGEST_HEAD, TAKEN_AT_ONCE
from gateway.web.tls import Certificate, context_of
from tests.conftest import Start
from tests.heard import Heard
from tests.waiting import until
from tests.web.test_connections import count, entrance, held, small_line, told
from tests.web.test_reader import FIRST, of_size
from tests.web.wire import say

DOCUMENT = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def write_pair(folder: Path, name: str = "tls", password: bytes | None = None) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    locked: Any = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password)
    )
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(made.public_bytes(pem))
    files[1].write_bytes(key.private_bytes(pem, form, locked))
    files[1].chmod(0o600)
    return files


def trusting(certificate: Path) -> ssl.SSLContext:
    """A client's context that trusts that certificate alone."""
    return ssl.create_default_context(cafile=certificate)


async def ask(port: int, context: ssl.SSLContext, sent: bytes = DOCUMENT) -> bytes:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    writer.write(sent)
    async with asyncio.timeout(5):
        heard = await reader.read()
    writer.close()
    return heard


async def test_partners_are_answered_over_tls_and_links_say_so(
    start_gateway: Start, tmp_path: Path
) -> None:
    certificate, key = write_pair(tmp_path)
    gateway = await start_gateway(tls_certificate=certificate, tls_key=key)
    heard = await ask(gateway.port, trusting(certificate))
    assert heard.startswith(b"HTTP/1.1 200")
    assert b"\r\nStrict-Transport-Security: max-age=31536000\r\n" in heard
    assert f"https://127.0.0.1:{gateway.port}/api/v1".encode() in heard
    assert gateway.base.startswith("https://")
    # more than is read at once, in records that come in pieces
    ahead = of_size(LARGEST_HEAD, FIRST) * 40
    heard = await ask(gateway.port, trusting(certificate), ahead + DOCUMENT)
    assert heard.count(b"HTTP/1.1 404") == 40
    assert heard.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
async def test_old_versions_of_tls_are_refused(
    start_gateway: Start, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    certificate, key = write_pair(tmp_path)
    gateway = await start_gateway(tls_certificate=certificate, tls_key=key)
    context = trusting(certificate)
    # else the client's own library would not even ask
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = version
    context.maximum_version = version
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await ask(gateway.port, context)
    await until(lambda: told(gateway) == {"tls": 1.0})
    assert (await ask(gateway.port, trusting(certificate))).startswith(b"HTTP/1.1 200")


async def test_what_speaks_no_tls_is_let_go_and_leaves_nothing(
    start_gateway: Start, tmp_path: Path
) -> None:
    certificate, key = write_pair(tmp_path)
    gateway = await start_gateway(tls_certificate=certificate, tls_key=key)
    async with held(gateway.port, "127.0.0.1", sent=DOCUMENT) as ((reader, _),):
        assert b"HTTP" not in await reader.read()
    await count(gateway, 0)


async def test_a_handshake_has_its_time_and_counts_as_a_connection(
    start_gateway: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "HANDSHAKE", 3.0)
    certificate, key = write_pair(tmp_path)
    gateway = await start_gateway(tls_certificate=certificate, tls_key=key, connections=3)
    began = time.monotonic()
    async with held(gateway.port, *["127.0.0.2"] * 3) as lines:
        await count(gateway, 3)
        # the first of the silent makes room
        assert (await ask(gateway.port, trusting(certificate))).startswith(b"HTTP/1.1 200")
        assert await lines[0][0].read() == b""
        assert time.monotonic() - began < tls.HANDSHAKE
        for reader, _ in lines:
            assert await reader.read() == b""
    assert time.monotonic() - began < 3 * tls.HANDSHAKE
    await count(gateway, 0)
    assert told(gateway)["idle"] == 1.0


async def test_a_slow_reader_of_tls_is_cut_off_too_and_little_is_read_ahead(
    start_gateway: Start, tmp_path: Path
) -> None:
    certificate, key = write_pair(tmp_path)
    gateway = await start_gateway(tls_certificate=certificate, tls_key=key)
    unsent = entrance(gateway).write_limit
    unsent.patience = 2.0
    line = small_line(gateway.gateway.public.socket)
    with await asyncio.to_thread(
        trusting(certificate).wrap_socket, line, server_hostname="localhost"
    ) as wrapped:
        asked = DOCUMENT.replace(b"Connection: close\r\n", b"")
        await asyncio.to_thread(wrapped.sendall, asked * 2000)
        await until(lambda: unsent.bytes > 0)
        [connection] = cast(Any, entrance(gateway))._inside
        line = connection._line
        # what TLS has made of it waits beneath, and counts
        beneath = line._ssl_protocol._transport.get_write_buffer_size()
        assert connection.unsent_bytes() >= beneath > 0
        assert len(line._ssl_protocol.get_buffer(-1)) == TAKEN_AT_ONCE
        assert len(connection._unread) + line.get_read_buffer_size() <= 3 * TAKEN_AT_ONCE
        began = time.monotonic()
        await count(gateway, 0)
        assert time.monotonic() - began < 3.2
    assert told(gateway)["reader"] == 1.0


async def test_a_renewed_pair_is_taken_and_a_broken_one_is_not(
    start_gateway: Start, tmp_path: Path
) -> None:
    certificate, key = write_pair(tmp_path)
    gateway = await start_gateway(tls_certificate=certificate, tls_key=key)
    following = gateway.gateway.public.certificate
    assert following is not None
    first = trusting(certificate)
    heard = Heard()
    following._events = heard
    other, other_key = write_pair(tmp_path, "other")
    certificate.write_bytes(other.read_bytes())
    await following.look()  # the key is still the old one's
    assert "is not the key of" in heard.said[0]
    await following.look()
    assert len(heard.said) == 1
    certificate.unlink()  # as somebody who writes it anew may do
    await following.look()
    assert "cannot be read" in heard.said[1]
    await ask(gateway.port, first)
    certificate.write_bytes(other.read_bytes())
    key.write_bytes(other_key.read_bytes())
    await following.look()
    await following.look()
    assert heard.events == ["certificate_refused", "certificate_refused", "certificate_renewed"]
    await ask(gateway.port, trusting(other))
    with pytest.raises(ssl.SSLCertVerificationError):
        await ask(gateway.port, first)


def spoil_key(certificate: Path, key: Path) -> None:
    key.write_text("nonsense")


def no_certificate(certificate: Path, key: Path) -> None:
    certificate.unlink()


def a_folder(certificate: Path, key: Path) -> None:
    key.unlink()
    key.mkdir()


def another_key(certificate: Path, key: Path) -> None:
    _, other = write_pair(key.parent, "other")
    key.write_bytes(other.read_bytes())


def a_password(certificate: Path, key: Path) -> None:
    other, locked = write_pair(key.parent, "other", b"secret")
    certificate.write_bytes(other.read_bytes())
    key.write_bytes(locked.read_bytes())


def for_everybody(certificate: Path, key: Path) -> None:
    key.chmod(0o644)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_key, r"tls_certificate: .* cannot be read as a certificate and its key in PEM"),
        (no_certificate, r"tls_certificate: .*tls.pem cannot be read: no such file"),
        (a_folder, r"tls_key: .*tls.key cannot be read: is a directory"),
        (another_key, r"tls_key: .* is not the key of the first certificate in"),
        (a_password, r"tls_key: .* is locked by a password"),
        (for_everybody, r"tls_key: everybody on this machine can read .*: chmod o-rwx"),
    ],
)
async def test_files_that_are_no_pair_refuse_the_start_by_name(
    start_gateway: Start, tmp_path: Path, spoil: Callable[[Path, Path], None], said: str
) -> None:
    certificate, key = write_pair(tmp_path)
    spoil(certificate, key)
    with pytest.raises(StartRefused, match=said):
        await start_gateway(tls_certificate=certificate, tls_key=key)


@pytest.mark.parametrize(
    ("given", "lacking"), [("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")]
)
async def test_a_certificate_comes_with_its_key(
    start_gateway: Start, given: str, lacking: str
) -> None:
    with pytest.raises(StartRefused, match=f"{lacking} is not set"):
        await start_gateway(**{given: Path("x")})


async def test_nothing_but_modern_tls_and_http_1_is_offered(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path)
    context = context_of(certificate, key)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.options & ssl.OP_NO_RENEGOTIATION


async def test_the_files_are_looked_at_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_EVERY", 0.02)
    pair = write_pair(tmp_path)
    heard = Heard()
    following = Certificate(*pair, heard)
    following.start()
    write_pair(tmp_path)
    async with asyncio.timeout(3):
        await heard.more.wait()
    assert heard.said == ["certificate_renewed"]
    await following.aclose()


async def test_the_panel_tells_browsers_to_come_over_tls_where_it_speaks_that_itself(
    start_gateway: Start, tmp_path: Path
) -> None:
    certificate, key = write_pair(tmp_path)
    asked = b"GET /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    pair = {"tls_certificate": certificate, "tls_key": key}
    names = {"admin_listen": "0.0.0.0:0", "admin_url": "https://localhost"}
    gateway = await start_gateway(**pair, **names)
    panel = gateway.gateway.panel
    assert panel is not None
    heard = await ask(panel.socket.getsockname()[1], trusting(certificate), asked)
    assert heard.startswith(b"HTTP/1.1 200")
    assert b"\r\nStrict-Transport-Security: max-age=31536000\r\n" in heard
    unread = await ask(panel.socket.getsockname()[1], trusting(certificate), b"GET\r\n\r\n")
    assert b" 400 " in unread
    assert b"\r\nStrict-Transport-Security: max-age=31536000\r\n" in unread
    plain = await start_gateway("plain")
    assert plain.gateway.panel is not None
    port = plain.gateway.panel.socket.getsockname()[1]
    said = await say(port, asked.replace(b"localhost", b"127.0.0.1:%d" % port))
    assert said.statuses == [200]
    assert b"strict-transport-security" not in said.data.lower()
