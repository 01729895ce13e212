"""The comparison of a big practice with a small one: what it says, and that it runs."""

import secrets
from itertools import repeat

import pytest

from bench.backends import Cost, Figure, Plan, run, table
from bench.calls import Call
from bench.rows import RESOURCES, Row, Spent
from bench.rows import table as rows_table
from tests.adapters.servers import execute, server

KINDS = {
    "postgres": ("postgresql", "SELECT datname FROM pg_database"
                 " UNION SELECT rolname FROM pg_roles"),
    "mariadb": ("mysql", "SELECT schema_name FROM information_schema.schemata"
                " UNION SELECT user FROM mysql.user"),
}  # fmt: skip


async def nothing() -> None:
    """Asks nobody."""


def figure(*, large: float, bound: bool = True) -> Figure:
    call = Call("one of all", nothing, bound=bound)
    return Figure(call, list(repeat(Cost(0.010, 0.001), 3)), list(repeat(Cost(large, 0.001), 3)))


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        (figure(large=0.019), "1.90  holds"),
        (figure(large=0.021), "2.10  OVER"),
        (figure(large=0.021, bound=False), "2.10  not bound"),
    ],
)
def test_a_call_holds_up_to_twice_its_cost(asked: Figure, verdict: str) -> None:
    *_, line = table("postgres", (0.5, 50), [asked])
    assert line.startswith("one of all")
    assert line.endswith(verdict)
    assert asked.is_over is ("OVER" in verdict)


def test_the_ratio_is_the_median_of_the_rounds_own() -> None:
    """In a slow spell of the machine both are slow, and what they are to each other stays."""
    small = [Cost(each, 0.0) for each in (0.010, 0.080, 0.010)]
    large = [Cost(each, 0.0) for each in (0.012, 0.096, 0.090)]
    assert Figure(Call("one of all", nothing), small, large).ratio == pytest.approx(1.2)


@pytest.mark.parametrize(("cpu", "verdict"), [(249.0, "holds"), (251.0, "OVER")])
def test_a_record_is_over_beyond_so_many_times_what_its_driver_takes(
    cpu: float, verdict: str
) -> None:
    whole = [Spent(each, 900.0) for each in (300.0, 420.0, 990.0)]
    row = Row("clients", [Spent(100.0, 150.0)] * 3, [Spent(cpu, 300.0)] * 3, whole)
    _, line, _ = rows_table([row])
    assert line.endswith(f"420.0 (  900.0)  4.20  {verdict}")
    assert row.is_over is (verdict == "OVER")
    assert list(rows_table([])) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["mariadb", "postgres"])
def test_every_call_is_made_on_both_practices_and_nothing_stays_behind(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, listed = KINDS[name]
    address = server(kind).render_as_string(hide_password=False)
    prefix = f"bench_test_{secrets.token_hex(5)}"
    figures, _ = run(name, address, Plan(prefix, (0.4, 0.5), rounds=1, calls=1))
    # on PostgreSQL a row of each resource beside its driver alone, between a head and a foot
    rows = len(RESOURCES) + 2 if name == "postgres" else 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(figures) + rows
    kinds = {each.call.name for each in figures}
    assert kinds >= {"one of consultations", "50 of patients, the middle", "a booking"}
    costs = [cost for each in figures for cost in (*each.small, *each.large)]
    assert len(costs) == 2 * len(figures)
    assert all(0 < each.cpu <= each.wall for each in costs)
    assert not [row for row in execute(address, listed) if str(row[0]).startswith(prefix)]
