"""A server under measurement: tells its own CPU seconds for each line on its standard input.

`python -m bench.served bare PORT` is the reference, a bare aiohttp handler with constant bytes;
`python -m bench.served gateway CONFIG` is the gateway as `serve` runs it; `python -m bench.served
without CONFIG FEATURE...` is one that lacks these, and does only when asked what is done each
second or minute.
"""

import asyncio
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec


def answer_asks(do: Callable[[str], None]) -> None:
    """One line in, this process's CPU seconds out, or its end where a wish fails."""
    for line in sys.stdin:
        if wish := line.strip():
            try:
                do(wish)
            except BaseException:  # noqa: BLE001 - whatever it was, the process ends
                traceback.print_exc()
                os._exit(1)
        sys.stdout.write(f"{time.process_time()}\n")
        sys.stdout.flush()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of a gateway by the same settings."""
    is_fast = os.environ.get("GATEWAY_EVENT_LOOP") != "asyncio" and find_spec("uvloop") is not None
    loop: asyncio.AbstractEventLoop = import_module(
        "uvloop" if is_fast else "asyncio"
    ).new_event_loop()
    return loop


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
    loop = new_event_loop()
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None, loop=loop)


def lacking(features: Sequence[str]) -> Callable[[str], None]:
    """Take these out; what does at once what is done now and then."""
    from bench.features import FEATURES, Ends

    for each in features:
        FEATURES[each]()
    return Ends().do


def main() -> None:
    kind, argument, *features = sys.argv[1:]
    do = lacking(features) if kind == "without" else lambda wish: None
    threading.Thread(target=answer_asks, args=(do,), daemon=True).start()
    if kind == "bare":
        bare(int(argument))
    else:
        from gateway.cli import main as command

        command(["serve", "--config", argument])


if __name__ == "__main__":
    main()
