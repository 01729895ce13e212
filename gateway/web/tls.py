"""The gateway's own TLS: its certificate and key, which may change, and what decrypts."""

import asyncio
import os
import ssl
from asyncio.sslproto import SSLProtocol
from pathlib import Path
from typing import cast

from gateway.background import Periodic
from gateway.events import Events
from gateway.identity import reason_of, stamp
from gateway.settings import StartRefused
from gateway.web.connection import KEEP_ALIVE, TAKEN_AT_ONCE, Connection

LOOK_EVERY = 30.0
# Seconds that a handshake may take, and the end of a connection.
HANDSHAKE, FAREWELL = KEEP_ALIVE, 5.0
# Tells browsers to use nothing but TLS for a year.
STRICT = {"Strict-Transport-Security": "max-age=31536000"}


class Certificate(Periodic):
    """The context for handshakes, made of the last sound pair of files."""

    def __init__(self, certificate: Path, key: Path, events: Events) -> None:
        """Reads the files; raises StartRefused where they are no usable pair."""
        self._files = (certificate, key)
        self._events = events
        self._stamps = self._refused = [*map(stamp, self._files)]
        self._context = context_of(certificate, key)
        super().__init__(LOOK_EVERY, self.look, name="follow the certificate")

    def __call__(self) -> ssl.SSLContext:
        return self._context

    async def look(self) -> None:
        """Takes over changed files where they are sound; reports an event in either case."""
        current = await asyncio.to_thread(lambda: [*map(stamp, self._files)])
        if current == self._stamps:
            return
        try:
            self._context = await asyncio.to_thread(context_of, *self._files)
        except (StartRefused, OSError) as error:  # tried again: they may be half written
            if current != self._refused:
                self._events.report("certificate_refused", said=str(error))
            self._refused = current
        else:
            self._stamps = current
            self._events.report("certificate_renewed")


class _Locked(Exception):
    pass


def context_of(certificate: Path, key: Path) -> ssl.SSLContext:
    """Returns a context for TLS 1.2 or newer; raises StartRefused where these are no pair."""
    for file, setting in ((certificate, "tls_certificate"), (key, "tls_key")):
        try:
            file.open("rb").close()
        except OSError as error:
            raise StartRefused(
                f"{setting}: {file} cannot be read: {reason_of(error)}; name a file that the"
                " gateway's user can read",
                setting,
            ) from error
    if os.name == "posix" and key.stat().st_mode & 0o007:
        raise StartRefused(
            f"tls_key: everybody on this machine can read {key}: chmod o-rwx {key}", "tls_key"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])

    def no_password() -> str:
        raise _Locked

    try:
        context.load_cert_chain(certificate, key, password=no_password)
    except _Locked as error:
        raise StartRefused(
            f"tls_key: {key} is locked by a password, and nobody is there to give it: write the key"
            " without one (openssl pkey -in KEY -out FILE)",
            "tls_key",
        ) from error
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise StartRefused(
                f"tls_key: {key} is not the key of the first certificate in {certificate}: give the"
                " pair that was issued together, the gateway's own certificate before its issuers'",
                "tls_key",
            ) from error
        raise StartRefused(
            f"tls_certificate: {certificate} and {key} cannot be read as a certificate and its key"
            f" in PEM form ({(error.reason or 'no PEM').lower().replace('_', ' ')}): give files"
            " that begin with -----BEGIN",
            "tls_certificate",
        ) from error
    return context


class TlsProtocol(SSLProtocol):
    """TLS of one connection, which reads at most TAKEN_AT_ONCE bytes at once.

    It is asyncio's own on every event loop: uvloop's hides what a reader has not taken.
    """

    max_size = TAKEN_AT_ONCE

    def __init__(
        self, connection: Connection, context: ssl.SSLContext, done: asyncio.Future[None]
    ) -> None:
        """Makes it; `done` ends with the handshake, or with why it failed."""
        self._connection = connection
        super().__init__(
            done.get_loop(),
            connection,
            context,
            done,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE,  # type: ignore[arg-type] # a float will do
            ssl_shutdown_timeout=FAREWELL,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.beneath = cast(asyncio.WriteTransport, transport)
        super().connection_made(transport)
