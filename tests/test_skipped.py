"""Skipped tests are summed up in one line that says what to start."""

from tests.conftest import summed_up


def test_servers_are_named_once_with_what_starts_them() -> None:
    reasons = [
        "Skipped: set TEST_POSTGRES_URL=postgresql://user@127.0.0.1/ (an account)",
        "Skipped: TEST_POSTGRES_URL is not set",
        "Skipped: set TEST_MARIADB_URL=mysql://user@127.0.0.1/ (an account)",
        "Skipped: haproxy is not installed",
    ]
    assert summed_up(reasons) == (
        '4 tests were skipped: eval "$(scripts/test-servers)" starts MariaDB, PostgreSQL;'
        " haproxy is not installed"
    )


def test_one_is_one() -> None:
    assert summed_up(["Skipped: install redis-server"]) == (
        "1 test was skipped: install redis-server"
    )
