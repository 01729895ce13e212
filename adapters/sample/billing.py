"""The invoices of the sample clinic: what was sold to whom, what it came to, what was paid."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample.sales import Item, Sale
from adapters.sample.values import NO_DAY, money, opening_moment, quantity, stamp

DRAFTS = 40
DRAFTS_AMONG = 120  # drafts are recent


class Invoice(NamedTuple):
    """A row of FACTURES."""

    id_fact: int
    numero: str
    id_pers: int
    etat: str
    d_emission: str
    d_echeance: str
    devise: str
    total_ht: str
    total_tva: str
    total_ttc: str
    dt_creation: str


class Line(NamedTuple):
    """A row of LIGNES_FACT."""

    id_ligne: int
    id_fact: int
    libelle: str
    qte: str
    pu_ht: str
    taux_tva: str
    total_ht: str
    lien: str


class Payment(NamedTuple):
    """A row of REGLEMENTS."""

    id_regl: int
    id_fact: int
    d_regl: str
    montant: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The three tables of the accounts."""

    invoices: list[Invoice]
    lines: list[Line]
    payments: list[Payment]


def make_accounts(rng: Random, today: date, sales: list[Sale]) -> Accounts:
    """One invoice per sale, in the order of the sales; `sales` stand by time."""
    recent = range(len(sales) - DRAFTS_AMONG, len(sales))
    drafts = set(rng.sample([n for n in recent if not sales[n].credit], DRAFTS))
    states = ["B" if n in drafts else _state(rng, today, sale) for n, sale in enumerate(sales)]
    numbers = _numbers(sales, states)
    pairs = list(zip(sales, states, strict=True))
    invoices = [
        _invoice(rng, number, numbers[number - 1], sale, state)
        for number, (sale, state) in enumerate(pairs, 1)
    ]
    lines = [_line(number, item) for number, sale in enumerate(sales, 1) for item in sale.items]
    paid = [
        payment
        for number, (sale, state) in enumerate(pairs, 1)
        for payment in _payments(rng, today, number, sale, state)
    ]
    paid.sort(key=lambda payment: (payment.d_regl, payment.id_fact))
    return Accounts(
        invoices=invoices,
        lines=[line._replace(id_ligne=number) for number, line in enumerate(lines, 1)],
        payments=[payment._replace(id_regl=number) for number, payment in enumerate(paid, 1)],
    )


def _state(rng: Random, today: date, sale: Sale) -> str:
    """Old invoices are mostly settled; a credit note is settled or waits."""
    old = (today - sale.moment.date()).days > 60
    if sale.credit:
        return rng.choice("SE")
    return rng.choices("SPEA", (89, 4, 4, 3) if old else (62, 11, 24, 3))[0]


def _numbers(sales: list[Sale], states: list[str]) -> list[str]:
    """A sequence per year without gaps; a draft has no number yet."""
    last: dict[int, int] = {}
    numbers = []
    for sale, state in zip(sales, states, strict=True):
        if state == "B":
            numbers.append("")
            continue
        year = sale.moment.year
        last[year] = last.get(year, 0) + 1
        numbers.append(f"F{year}-{last[year]:05d}")
    return numbers


def _invoice(rng: Random, number: int, label: str, sale: Sale, state: str) -> Invoice:
    """One row; a draft has no dates and no totals."""
    draft = state == "B"
    due = (sale.moment + timedelta(days=rng.choice((0, 30, 30)))).date().isoformat()
    undated = draft or rng.random() < 0.15
    return Invoice(
        id_fact=number,
        numero=label,
        id_pers=sale.payer,
        etat=state,
        d_emission=NO_DAY if draft else stamp(sale.moment),
        d_echeance=NO_DAY if undated else due,
        devise="EUR",
        total_ht="" if draft else money(sale.net),
        total_tva="" if draft else money(sale.tax),
        total_ttc="" if draft else money(sale.total),
        dt_creation=stamp(sale.moment),
    )


def _line(invoice: int, item: Item) -> Line:
    return Line(
        id_ligne=0,
        id_fact=invoice,
        libelle=item.label,
        qte=quantity(item.tenths),
        pu_ht=money(item.cents),
        taux_tva=money(item.rate * 100),
        total_ht=money(item.net),
        lien=f"ANIMAL:{item.animal}" if item.animal else "",
    )


def _payments(rng: Random, today: date, number: int, sale: Sale, state: str) -> list[Payment]:
    """To the cent for a settled invoice, something less for a partly paid one."""
    if state == "S":
        parts = _split(rng, sale.total)
    elif state == "P":
        parts = [sale.total * rng.randrange(20, 80) // 100]
    else:
        return []
    return [
        Payment(0, number, stamp(_paid_on(rng, today, sale)), money(part), mode)
        for part in parts
        for mode in rng.choices(("CB", "CH", "ES", "VI"), (60, 15, 15, 10))
    ]


def _split(rng: Random, total: int) -> list[int]:
    """One payment, or two or three that make up the sum."""
    count = rng.choices((1, 2, 3), (86, 10, 4))[0]
    if count == 1 or total < 2000:
        return [total]
    share = total * rng.randrange(70, 115) // (100 * count)
    return [share] * (count - 1) + [total - share * (count - 1)]


def _paid_on(rng: Random, today: date, sale: Sale) -> datetime:
    """At the desk right away, or some weeks later."""
    days = rng.choice((0, 0, 0, 5, 12, 28, 41))
    return min(sale.moment + timedelta(days=days, minutes=4), opening_moment(today))
