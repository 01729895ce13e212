"""nginx before two nodes, as the command prints it: who is asked, and what is sent again."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from click.testing import CliRunner

from gateway.cli import main
from tests.cluster.nodes import Able, Dying, answer
from tests.streams import Streams
from tests.wire.proxies import changed, command, free_port

SETTINGS = {
    "public_url": "http://127.0.0.1:8080",
    "trusted_proxies": "127.0.0.1",
    "nodes": 2,
    "store": "postgresql://gateway@127.0.0.1/gateway",
    "limiter": "redis://127.0.0.1:6379",
}


@asynccontextmanager
async def proxied(folder: Path, servers: Sequence[Streams]) -> AsyncIterator[int]:
    for each in servers:
        await each.open()
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *command("nginx", printed(folder, port, servers)), stderr=subprocess.DEVNULL
    )
    try:
        yield port
    finally:
        process.terminate()
        await process.wait()
        for each in servers:
            await each.close()


def printed(folder: Path, port: int, servers: Sequence[Streams]) -> Path:
    config, file = folder / "gateway.yaml", folder / "nginx.conf"
    config.write_text(json.dumps(SETTINGS))
    nodes = [f"--node=node-{at}=127.0.0.1:{each.port}" for at, each in enumerate(servers)]
    words = ["--config", str(config), "proxy", "nginx", f"--listen=127.0.0.1:{port}", *nodes]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    file.write_text(done.stdout)
    return changed(file, folder, {"/run/": f"{folder}/", "/var/log/nginx/": f"{folder}/"})


async def test_a_node_that_takes_no_connection_is_passed_by(tmp_path: Path) -> None:
    nodes = [Able(set()), Able(set())]
    servers = [Streams(each.serve) for each in nodes]
    async with proxied(tmp_path, servers) as port:
        assert await answer(port, "GET") == (200, {})
        await servers[0].close()
        nodes[0].asked.clear()
        for method in ("GET", "POST") * 8:
            assert await answer(port, method) == (200, {})
        assert nodes[0].asked == []
        await servers[0].open()
        async with asyncio.timeout(30):
            while not nodes[0].asked:
                assert await answer(port, "GET") == (200, {})


async def test_a_booking_that_was_sent_is_never_sent_again_and_a_read_is(tmp_path: Path) -> None:
    nodes = [Dying(), Dying()]
    async with proxied(tmp_path, [Streams(each.serve) for each in nodes]) as port:
        assert await answer(port, "POST") == (
            504,
            {"message": "Booking outcome unknown. Check before booking again."},
        )
        assert [*nodes[0].asked, *nodes[1].asked] == [b"POST"]
        assert await answer(port, "GET") == (503, {"message": "Service temporarily unavailable"})
        assert all(b"GET" in node.asked for node in nodes)


async def test_where_all_nodes_have_failed_calls_are_answered_again_once_one_is_back(
    tmp_path: Path,
) -> None:
    nodes = [Able(set()), Able(set())]
    servers = [Streams(each.serve) for each in nodes]
    async with proxied(tmp_path, servers) as port:
        assert await answer(port, "GET") == (200, {})
        for each in servers:
            await each.close()
        for method in ("GET", "POST") * 5:
            told = {"message": "Service temporarily unavailable"}
            assert await answer(port, method) == (503, told)
        await servers[1].open()
        async with asyncio.timeout(30):
            while (await answer(port, "GET"))[0] != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
