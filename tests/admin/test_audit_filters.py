"""What is looked for in the audit: what cannot be meant is said beside its field."""

import aiohttp
import pytest

from tests.admin.manager import manager_of
from tests.conftest import RunningGateway


@pytest.mark.parametrize(
    "query",
    [
        "from=yesterday",
        "from=0001-01-01T00:00",
        "to=9999-12-31T23:59-12:00",
        "operation=drop_table",
        "outcome=lost",
        "key=nobody",
    ],
)
async def test_a_filter_that_means_nothing_is_marked_and_nothing_is_shown(
    running_gateway: RunningGateway, session: aiohttp.ClientSession, query: str
) -> None:
    manager = await manager_of(running_gateway, session)
    page = await manager.get(f"/audit?{query}")
    assert page.status == 422
    assert page.text.count('aria-invalid="true"') == 1
    assert f'aria-describedby="{query.partition("=")[0]}-wrong"' in page.text
    assert "Download as CSV" not in page.plain
