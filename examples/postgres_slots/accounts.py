"""Invoices, credit notes and drafts, payments that are allocated; articles, their moves."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from random import Random

from adapters.sample import vocabulary as words
from examples.loading import Row
from examples.postgres_slots.values import euros, patient_id, utc
from examples.practice import WARES, Practice
from examples.records import Bill, Line

Rows = Iterator[tuple[str, Row]]
STATES = {"open": "F", "part": "F", "paid": "F", "cancelled": "X", "draft": "D"}
ARTICLES = 60
MOVES = 15
LOCATIONS = (  # a tree: what hangs under 1 is the clinic's own
    (1, None, "Clinic"),
    (2, 1, "Pharmacy"),
    (3, 2, "Fridge"),
    (4, 2, "Locked cabinet"),
    (5, 1, "Van"),
    (90, None, "Suppliers"),
    (91, None, "Used up"),
)
OWN = (2, 3, 4, 5)
SUPPLIER, USED = 90, 91


def account_rows(practice: Practice) -> Rows:
    """Every bill with its lines, its payments and what of them is for it."""
    line = 0
    for bill in practice.bills():
        yield "Invoice", _invoice(bill)
        for each in bill.lines:
            line += 1
            yield "InvoiceLine", (line, bill.id, *_line(bill, each))
        yield from _payments(bill)


def _invoice(bill: Bill) -> Row:
    draft = bill.state == "draft"
    return (
        bill.id, None if draft else f"{bill.issued.year}-{bill.id:06d}",
        "CRN" if bill.net < 0 else "INV", bill.client, STATES[bill.state],
        None if draft else utc(bill.issued), None if draft else euros(bill.net),
        None if draft else euros(bill.tax), "EUR", utc(bill.issued),
    )  # fmt: skip


def _line(bill: Bill, line: Line) -> Row:
    about = f"contact:{bill.client}" if line.animal is None else f"patient:{line.animal}"
    if line.animal is not None:
        about = f"patient:{patient_id(line.animal)}"
    elif bill.id % 2:
        about = ""
    rate = Decimal(line.rate) / 100
    return (
        line.label, Decimal(line.quantity), euros(line.cents), rate, euros(line.total), about
    )  # fmt: skip


def _payments(bill: Bill) -> Rows:
    """One payment; every eighth was for more than this invoice, and the rest is not allocated."""
    if not bill.paid:
        return
    over = 5_000 if bill.id % 8 == 0 else 0
    when = utc(bill.issued + timedelta(days=bill.id % 20))
    means = ("card", "cash", "giro", "card")[bill.id % 4]
    yield "Payment", (bill.id, when, means, euros(bill.paid + over))
    half = bill.paid // 2 if bill.id % 3 == 0 else 0
    yield "Allocation", (2 * bill.id, bill.id, bill.id, euros(bill.paid - half))
    if half:
        yield "Allocation", (2 * bill.id + 1, bill.id, bill.id, euros(half))


def stock_rows(practice: Practice) -> Rows:
    """Articles with long codes; what there is of them follows from their moves alone."""
    for row in LOCATIONS:
        yield "Location", row
    rng = practice.stream("stock")
    for number in range(1, ARTICLES + 1):
        yield from _article(rng, practice, number)


def code_of(number: int) -> str:
    """The code of an article: 'ART-000012-AMOX'."""
    return f"ART-{number:06d}-{WARES[number % len(WARES)][:4].upper()}"


def _article(rng: Random, practice: Practice, number: int) -> Rows:
    code, ware = code_of(number), WARES[number % len(WARES)]
    cost = rng.randrange(200, 150_000)
    supplier = words.SUPPLIERS[number % len(words.SUPPLIERS)]
    edited = None if number % 4 else utc(practice.now) - timedelta(days=number)
    yield (
        "Article",
        (code, f"{ware} {number * 5} mg", 2 if "food" in ware else 1, "box",
         euros(cost * 3 // 2), euros(cost), supplier, number % 20 == 0, edited),
    )  # fmt: skip
    for place in OWN[: number % 4]:
        yield "Minimum", (code, place, Decimal(rng.choice((2, 5, 10))))
    if number % 10 == 7:  # never had any
        return
    for move in range(rng.randrange(2, MOVES)):
        at = utc(practice.now) - timedelta(days=200 - move)
        yield "Move", (code, *_move(rng, practice, move), at)


def _move(rng: Random, practice: Practice, place: int) -> Row:
    """Something comes in, is put elsewhere, or is used up (sometimes more than there was)."""
    lot, expires = f"LOT{place:03d}", practice.today + timedelta(days=30 + 40 * place)
    match place % 3:
        case 0:
            return (SUPPLIER, 2, Decimal(rng.randrange(2, 20)), lot, expires)
        case 1:
            return (2, rng.choice(OWN[1:]), Decimal(rng.randrange(1, 5)), None, None)
        case _:
            return (rng.choice(OWN), USED, Decimal(rng.randrange(1, 15)), None, None)
