"""Says at the end of a run how many requests were made, where any were."""

from collections.abc import Callable

import pytest

MADE = pytest.StashKey[list[str]]()


@pytest.fixture
def tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    return pytestconfig.stash.setdefault(MADE, []).append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash.get(MADE, []):
        terminalreporter.write_line(line)
