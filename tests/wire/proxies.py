"""nginx and HAProxy in front of a gateway, as `examples/proxies` has them, with TLS."""

import asyncio
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "proxies"
FILES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}
UNTRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
UNTRUSTING.check_hostname = False
UNTRUSTING.verify_mode = ssl.CERT_NONE


def certify(folder: Path) -> None:
    """A key and a certificate for it, apart and in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gateway")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "gateway.crt").write_bytes(certificate)
    (folder / "gateway.key").write_bytes(private)
    (folder / "gateway.pem").write_bytes(certificate + private)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def fitted(program: str, folder: Path, port: int, gateway: int, operations: int) -> Path:
    """The example with the addresses and the folder of this machine, and nothing else changed."""
    changes = {
        "nginx": {
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
            "server 127.0.0.1:8080": f"server 127.0.0.1:{gateway}",
            "/run/nginx.pid;": f"{folder}/nginx.pid;",
            "/var/log/nginx/partners.log": f"{folder}/partners.log",
            "worker_processes auto;": "worker_processes 1;",
            "/etc/clinic-gateway/": f"{folder}/",
        },
        "haproxy": {
            "bind :443 ssl": f"bind 127.0.0.1:{port} ssl",
            "server gateway 127.0.0.1:8080": f"server gateway 127.0.0.1:{gateway}",
            "check port 8081": f"check port {operations}",
            "/etc/clinic-gateway/": f"{folder}/",
        },
    }[program]
    return changed(EXAMPLES / FILES[program], folder, changes)


def changed(shipped: Path, folder: Path, changes: Mapping[str, str]) -> Path:
    """A copy in that folder in which each of these places is another one."""
    text = shipped.read_text("utf-8")
    for old, new in changes.items():
        assert old in text, f"{shipped}: {old}"
        text = text.replace(old, new)
    copy = folder / shipped.name
    copy.write_text(text, "utf-8")
    return copy


def command(program: str, configuration: Path) -> list[str]:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed")
    if program == "nginx":
        folder = str(configuration.parent)
        return [found, "-p", folder, "-e", "stderr", "-c", str(configuration), "-g", "daemon off;"]
    return [found, "-db", "-f", str(configuration)]


@asynccontextmanager
async def proxied(program: str, folder: Path, gateway: int, operations: int) -> AsyncIterator[int]:
    """The port of a proxy that answers, in front of that gateway."""
    certify(folder)
    port = free_port()
    words = command(program, fitted(program, folder, port, gateway, operations))
    with (folder / "stderr").open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(*words, stdout=stderr, stderr=stderr)
    try:
        await _answers(port, process, folder)
        yield port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answers(port: int, process: asyncio.subprocess.Process, folder: Path) -> None:
    for _ in range(200):
        assert process.returncode is None, (folder / "stderr").read_text()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=UNTRUSTING)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise TimeoutError((folder / "stderr").read_text())
