"""The ledger: bills by site and number, their lines, what was paid, and when it was due."""

from collections.abc import Iterator
from datetime import timedelta

from examples.loading import Row
from examples.mariadb_eav.values import NO_DAY, NO_DAY_EITHER, Ids, amount
from examples.practice import Practice
from examples.records import Bill

Rows = Iterator[tuple[str, Row]]
SITES = ("ANT", "GNT")
STATUS = {"open": "O", "part": "P", "paid": "F", "cancelled": "X", "draft": "D"}
METHODS = "BCT"


def bill_rows(practice: Practice) -> Rows:
    """Every bill: two sites number their bills each for itself."""
    ids = Ids(practice)
    for bill in practice.bills():
        yield from _bill(ids, bill)


def key_of(bill: Bill) -> tuple[str, int]:
    """The bill's key: its site, and its number there."""
    return SITES[bill.id % 2], 1000 + (bill.id + 1) // 2


def _bill(ids: Ids, bill: Bill) -> Rows:
    key = key_of(bill)
    issued: Row = (bill.issued.date(), bill.issued.time())
    if bill.state == "draft":
        issued = (NO_DAY, "00:00:00")
    who = (*key, ids.client(bill.client), STATUS[bill.state])
    sums = (amount(bill.net), amount(bill.tax), amount(bill.net + bill.tax))
    yield "ledger", (*who, *issued, *sums, bill.issued)
    due = bill.issued.date() + timedelta(days=30) if bill.id % 5 else NO_DAY_EITHER
    if bill.id % 7:
        yield "ledger_terms", (*key, due)
    for line in bill.lines:
        pet = None if line.animal is None else ids.pet(line.animal)
        rate = f"{line.rate},00"
        row = (line.label, str(line.quantity), amount(line.cents), rate, amount(line.total), pet)
        yield "ledger_lines", (*key, *row)
    for share in _shares(bill):
        day = bill.issued.date() + timedelta(days=bill.id % 20)
        yield "ledger_payments", (*key, day, METHODS[bill.id % 3], amount(share))


def _shares(bill: Bill) -> list[int]:
    """A big sum is paid in two parts."""
    if not bill.paid:
        return []
    if bill.paid < 20_000:
        return [bill.paid]
    return [bill.paid // 3, bill.paid - bill.paid // 3]
