"""A server under measurement: tells its own CPU seconds for each line on its standard input.

`python -m bench.served bare PORT` is the reference, a bare aiohttp handler with constant bytes;
`python -m bench.served gateway CONFIG` is the gateway as `serve` runs it; `audited` the same with
an audit that indexes its entries each second, `unaudited` with one that takes none.
"""

import sys
import threading
import time


def answer_asks() -> None:
    """One line in, this process's CPU seconds out; gone when the input ends."""
    for _ in sys.stdin:
        sys.stdout.write(f"{time.process_time()}\n")
        sys.stdout.flush()


def bare(port: int) -> None:
    """The reference: one route, constant bytes, no access log."""
    import orjson
    from aiohttp import web

    from bench.ready import CLIENT

    body = orjson.dumps(CLIENT)

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_get("/api/v1/clients/{id}", handler)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


def without_audit() -> None:
    """No entry is made, written or indexed."""
    from gateway.audit.journal import Journal
    from gateway.web import noting

    noting.entry_of = lambda call, operation, now, error: None  # type: ignore[assignment]
    Journal.note = lambda self, access, entry: self._access.add(access)  # type: ignore[method-assign]


def main() -> None:
    threading.Thread(target=answer_asks, daemon=True).start()
    kind, argument = sys.argv[1:]
    if kind == "bare":
        bare(int(argument))
    else:
        from gateway.audit import upkeep
        from gateway.cli import main as command

        if kind == "audited":
            upkeep.INDEX_EVERY = 1.0
        if kind == "unaudited":
            without_audit()

        command(["serve", "--config", argument])


if __name__ == "__main__":
    main()
