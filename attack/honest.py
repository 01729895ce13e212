"""`python -m attack.honest PORT PATH SECRET`: an honest partner, until its standard input ends.

Each answer is a line with its milliseconds, each call that was not answered well one with `failed`
and why. Half of the calls come on a new connection, half on one that is kept; where that was closed
meanwhile, the call is repeated once on a new one, as clients do, and both times count.
"""

import http.client
import sys
import threading
import time

# An address of its own.
SOURCE = ("127.9.9.9", 0)
PATIENCE = 5.0
PAUSE = 0.02


class Partner:
    """Asks for one thing over and over."""

    def __init__(self, port: int, path: str, secret: str) -> None:
        self._port, self._path = port, path
        self._headers = {"X-API-Key": secret}
        self._kept = self._connection()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(
            "127.0.0.1", self._port, timeout=PATIENCE, source_address=SOURCE
        )

    def call(self, *, anew: bool) -> str:
        """One call, as a line."""
        began = time.perf_counter()
        try:
            status = self._asked_anew() if anew else self._asked()
        except (OSError, http.client.HTTPException) as error:
            return f"failed {type(error).__name__}"
        if status != 200:
            return f"failed {status}"
        return f"{(time.perf_counter() - began) * 1000:.3f}"

    def _asked_anew(self) -> int:
        connection = self._connection()
        try:
            return self._ask(connection)
        finally:
            connection.close()

    def _asked(self) -> int:
        try:
            return self._ask(self._kept)
        except (OSError, http.client.HTTPException):
            self._kept.close()
            return self._ask(self._kept)

    def _ask(self, connection: http.client.HTTPConnection) -> int:
        connection.request("GET", self._path, headers=self._headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def main() -> None:
    port, path, secret = sys.argv[1:]
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    partner, anew = Partner(int(port), path, secret), False
    while not ended.wait(PAUSE):
        print(partner.call(anew=anew), flush=True)
        anew = not anew


if __name__ == "__main__":
    main()
