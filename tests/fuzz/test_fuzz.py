"""Generated requests, right ones and wrong ones, against the running gateway: every check holds.

For each level schemathesis reads the document as that level's key sees it. FUZZ_CASES says how
many cases there are to be in all, at the least.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.base import Query
from tests.partner import Partner

CASES = int(os.environ.get("FUZZ_CASES", "300"))
LEVELS = ("BASIC", "STANDARD", "FULL")
LISTS = ("/clients", "/patients", "/stock", "/stock/low")
HOOKS = "tests.fuzz.hooks"


@pytest.mark.fuzz
@pytest.mark.long
@pytest.mark.parametrize("level", LEVELS)
async def test_every_operation_keeps_the_documents_word(
    partner: Partner, tmp_path: Path, level: str, tell: Callable[[str], None]
) -> None:
    key = await partner.with_key(level=level, limit=1_000_000_000)
    document = (await key.get("/openapi.json")).data
    operations = sum(len(item) for item in document["paths"].values())
    assert operations == 14
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document))
    said, code = await run(file, key, cursors=await cursors(key))
    assert code == 0, said
    made = re.search(r"([0-9,]+) generated", said)
    assert made is not None, said
    tell(f"{level}: {made[1]} requests generated")
    assert int(made[1].replace(",", "")) >= CASES / len(LEVELS), said


async def cursors(key: Partner) -> dict[str, str]:
    """A real cursor of each list."""
    found = {}
    for path in LISTS:
        link = (await key.get(path, limit="1")).headers["Link"]
        found[path] = re.search(r"cursor=([^&>]+)", link)[1]  # type: ignore[index]
    return found


async def deceased(key: Partner) -> list[str]:
    """The animals that have died."""
    found, after = [], None
    while True:
        query = Query(resource="patients", now=datetime.now(UTC), limit=200, after=after)
        page = await key.gateway.gateway.adapter.read_many(query)
        found += [each["id"] for each in page.records if each["status"] == "DECEASED"]
        after = page.after
        if after is None:
            return found


def known_ids(ids: Mapping[str, str]) -> dict[str, str]:
    """Ids that exist, by the path or the member that takes them."""
    paths = {
        f"/{name}/{{id}}": ids[name]
        for name in ("appointments", "clients", "patients", "consultations", "invoices")
    }
    members = {
        "clientId": ids["clients"],
        "patientId": ids["patients"],
        "vetId": ids["vet"],
        "appointmentTypeId": ids["appointmentTypes"],
    }
    return {**paths, "/stock/{stockId}": ids["stock"], **members}


async def run(file: Path, key: Partner, *, cursors: dict[str, str]) -> tuple[str, int]:
    """What schemathesis prints of a run with all its checks, and its exit code."""
    examples = str(max(2, CASES // len(LEVELS) // 14))
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "schemathesis"),
        "run", str(file), "--url", key.gateway.base, "--header", f"X-API-Key:{key.secret}",
        "--checks", "all", "--max-examples", examples, "--continue-on-failure", "--no-color",
        "--generation-database", "none", "--seed", os.environ.get("FUZZ_SEED", "1"),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        cwd=file.parent,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": HOOKS,
            "PYTHONPATH": str(Path(__file__).parent.parent.parent),
            "FUZZ_CURSORS": json.dumps(cursors),
            "FUZZ_IDS": json.dumps(known_ids(await key.ids())),
            "FUZZ_DECEASED": json.dumps(await deceased(key)),
        },
    )  # fmt: skip
    output, _ = await process.communicate()
    return output.decode(), process.returncode or 0
