"""What the vets of the sample clinic wrote after a visit, what was sold, and what was paid."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample.diary import DeskBooking, Roster
from adapters.sample.people import Herd, Person
from adapters.sample.rows import (
    NO_DAY,
    NO_MOMENT,
    Row,
    awake,
    desk_moment,
    money,
    numbered,
    opening_moment,
    quantity,
    stamp,
)
from adapters.sample.stock import Ware
from adapters.sample.vocabulary import ACTS, CASES, COMPLEMENTS, CONSULTATION, INTERNAL_NOTES

KEPT = 1200
DELETED = 15
WALK_INS = 60
FORGOTTEN = 12  # recent ones that nobody has validated yet
FORGOTTEN_DAYS = 45

SALES = 1500
FROM_VISITS = 1050
CREDITS = 9
OTHER_PAYER = 0.05  # a relative, a breeder: not the animal's owner
DRAFTS = 40
DRAFTS_AMONG = 120  # drafts are recent


class Consult(NamedTuple):
    """A row of CONSULTATIONS."""

    id_cons: int
    id_rdv: int | None
    id_animal: int
    id_veto: int
    etat: str
    importance: str
    d_debut: str
    d_valid: str
    resume: str
    diagnostic: str
    consignes: str
    notes_internes: str
    supprime: int
    dt_creation: str


class _Visit(NamedTuple):
    """What a consultation is about; without a booking it has no id."""

    booking: int | None
    animal: int
    vet: int
    kind: int
    start: datetime


def make_consults(
    rng: Random, today: date, bookings: list[DeskBooking], roster: Roster, herd: Herd
) -> list[Consult]:
    """Those of the visits that are over, of the ones going on, and of some walk-ins; by time."""
    running = [_of_booking(row) for row in bookings if row.statut == "E" and row.id_veto]
    done = [_of_booking(row) for row in bookings if row.statut == "T" and row.id_veto]
    walk_ins = [_walk_in(rng, today, roster, herd) for _ in range(WALK_INS)]
    chosen = rng.sample(done, KEPT + DELETED - WALK_INS - len(running))
    rows = [_consult(rng, today, visit) for visit in chosen + walk_ins]
    for place in rng.sample(range(len(rows)), DELETED):
        rows[place] = rows[place]._replace(supprime=1)
    # some recent ones stay open, as with busy vets
    since = (today - timedelta(days=FORGOTTEN_DAYS)).isoformat()
    recent = [place for place, row in enumerate(rows) if row.d_debut > since and not row.supprime]
    for place in rng.sample(recent, FORGOTTEN):
        rows[place] = _in_progress(rows[place])
    rows += [_in_progress(_consult(rng, today, visit)) for visit in running]
    rows.sort(key=lambda row: (row.d_debut, row.id_veto, row.id_animal))
    return [row._replace(id_cons=number) for number, row in enumerate(rows, 1)]


def _of_booking(row: DeskBooking) -> _Visit:
    kind, start = row.id_type or CONSULTATION.id_type, datetime.fromisoformat(row.d_debut)
    return _Visit(row.id_rdv, row.id_animal, row.id_veto or 0, kind, start)


def _walk_in(rng: Random, today: date, roster: Roster, herd: Herd) -> _Visit:
    """Somebody who came to a vet on duty without a booking, on some day of the last two years."""
    while True:
        day = today - timedelta(days=rng.randrange(1, 700))
        sheets = roster.sheets(day, day)
        animal = rng.choice(herd.animals)
        if sheets and herd.patient_on(animal, day, planned=False):
            sheet = rng.choice(sheets)
            start = rng.choice(sheet.quarters)
            return _Visit(None, animal.id_animal, sheet.vet, CONSULTATION.id_type, start)


def _consult(rng: Random, today: date, visit: _Visit) -> Consult:
    """A validated consultation with the texts of one of the cases of its kind."""
    start = visit.start + timedelta(minutes=rng.randrange(10), seconds=rng.randrange(60))
    end = start + timedelta(minutes=rng.choice((15, 20, 35, 60, 24 * 60)))
    case = rng.choice(CASES.get(visit.kind, CASES[CONSULTATION.id_type]))
    measured = f" Température {rng.randrange(379, 396) / 10:.1f} °C.".replace(".", ",", 1)
    return Consult(
        id_cons=0,
        id_rdv=visit.booking,
        id_animal=visit.animal,
        id_veto=visit.vet,
        etat="V",
        importance=rng.choices("123", (60, 30, 10))[0],
        d_debut=stamp(start),
        d_valid=stamp(awake(min(end, opening_moment(today)))),
        resume=case.summary + (measured if rng.random() < 0.4 else ""),
        diagnostic=case.diagnosis,
        consignes=case.advice,
        notes_internes=rng.choice(INTERNAL_NOTES),
        supprime=0,
        dt_creation=stamp(start),
    )


def _in_progress(row: Consult) -> Consult:
    """Not validated: there is no diagnosis yet."""
    return row._replace(etat="E", d_valid=NO_MOMENT, diagnostic="")


class Item(NamedTuple):
    """One line: a quantity in tenths at cents each; credit notes count backwards."""

    label: str
    tenths: int
    cents: int
    rate: int
    animal: int | None

    @property
    def net(self) -> int:
        return self.tenths * self.cents // 10

    @property
    def tax(self) -> int:
        return self.net * self.rate // 100


class Sale(NamedTuple):
    """What one invoice is about; sums in cents."""

    moment: datetime
    payer: int
    items: list[Item]
    credit: bool = False

    @property
    def net(self) -> int:
        return sum(item.net for item in self.items)

    @property
    def tax(self) -> int:
        return sum(item.tax for item in self.items)

    @property
    def total(self) -> int:
        return self.net + self.tax


class Shop(NamedTuple):
    """What sales are made of."""

    clients: list[Person]
    herd: Herd
    bookings: list[DeskBooking]
    consults: list[Consult]
    wares: list[Ware]


def make_sales(rng: Random, today: date, shop: Shop) -> list[Sale]:
    """All sales by time: of most visits, and over the counter; a few were taken back later."""
    visits = list(_visits(rng, today, shop))
    counter = [_over_counter(rng, today, shop) for _ in range(SALES - CREDITS - len(visits))]
    taken_back = [_taken_back(rng, today, sale) for sale in rng.sample(visits + counter, CREDITS)]
    return sorted(visits + counter + taken_back, key=lambda sale: (sale.moment, sale.payer))


def _visits(rng: Random, today: date, shop: Shop) -> Iterator[Sale]:
    """The bills of consultations, to the owner of that day or to somebody who pays for them."""
    kinds = {row.id_rdv: row.id_type for row in shop.bookings}
    owned = [
        (row, owner)
        for row in shop.consults
        if not row.supprime
        and (owner := shop.herd.owner_on(row.id_animal, date.fromisoformat(row.d_debut[:10])))
        is not None
    ]
    for row, owner in rng.sample(owned, FROM_VISITS):
        kind = (row.id_rdv and kinds[row.id_rdv]) or CONSULTATION.id_type
        payer = rng.choice(shop.clients).id_pers if rng.random() < OTHER_PAYER else owner
        start = datetime.fromisoformat(row.d_debut)
        moment = awake(start + timedelta(minutes=rng.randrange(25, 50)))
        items = _visit_items(rng, shop, kind, row.id_animal)
        yield Sale(min(moment, opening_moment(today)), payer, items)


def _visit_items(rng: Random, shop: Shop, kind: int, animal: int) -> list[Item]:
    """The act, what was done besides, and what they took home."""
    act = rng.choice(ACTS[kind])
    items = [Item(act.label, 10, act.cents, 20, animal)]
    for more in rng.sample(COMPLEMENTS, rng.choices((0, 1, 2), (50, 35, 15))[0]):
        tenths = rng.choice((5, 10, 15, 25)) if more.halves else 10
        items.append(Item(more.label, tenths, more.cents, 20, animal))
    wares = _wares(rng, shop, rng.choices((0, 1, 2), (55, 30, 15))[0])
    return items + [ware._replace(animal=rng.choice((animal, None))) for ware in wares]


def _over_counter(rng: Random, today: date, shop: Shop) -> Sale:
    """Goods only, for no animal in particular; now and then a whole pallet."""
    day = today - timedelta(days=rng.randrange(1, 730))
    day -= timedelta(days=1 if day.isoweekday() == 7 else 0)
    payer = rng.choice(shop.clients).id_pers
    return Sale(desk_moment(rng, day), payer, _wares(rng, shop, rng.choice((1, 1, 2, 3, 4, 5))))


def _wares(rng: Random, shop: Shop, count: int) -> list[Item]:
    amounts = (10, 10, 10, 20, 30, 120)
    return [
        Item(ware.label, rng.choice(amounts), ware.cents, ware.rate, None)
        for ware in rng.sample(shop.wares, count)
    ]


def _taken_back(rng: Random, today: date, sale: Sale) -> Sale:
    """A credit note for the first lines of a sale, some days after it."""
    moment = min(sale.moment + timedelta(days=rng.randrange(1, 30)), opening_moment(today))
    items = [item._replace(tenths=-item.tenths) for item in sale.items[:2]]
    return Sale(moment, sale.payer, items, credit=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The rows of FACTURES, LIGNES_FACT and REGLEMENTS."""

    invoices: list[Row]
    lines: list[Row]
    payments: list[Row]


def make_accounts(rng: Random, today: date, sales: list[Sale]) -> Accounts:
    """One invoice per sale, in the order of the sales; `sales` stand by time."""
    recent = range(len(sales) - DRAFTS_AMONG, len(sales))
    drafts = set(rng.sample([n for n in recent if not sales[n].credit], DRAFTS))
    states = ["B" if n in drafts else _state(rng, today, sale) for n, sale in enumerate(sales)]
    labels = _labels(sales, states)
    billed = list(zip(sales, states, strict=True))
    invoices = [_invoice(rng, label, *bill) for label, bill in zip(labels, billed, strict=True)]
    paid = [
        (number, *payment)
        for number, bill in enumerate(billed, 1)
        for payment in _payments(rng, today, *bill)
    ]
    lines = [(number, *_line(item)) for number, s in enumerate(sales, 1) for item in s.items]
    payments = sorted(paid, key=lambda payment: (payment[1], payment[0]))
    return Accounts(invoices=numbered(invoices), lines=numbered(lines), payments=numbered(payments))


def _state(rng: Random, today: date, sale: Sale) -> str:
    """Old invoices are mostly settled; a credit note is settled or waits."""
    old = (today - sale.moment.date()).days > 60
    if sale.credit:
        return rng.choice("SE")
    return rng.choices("SPEA", (89, 4, 4, 3) if old else (62, 11, 24, 3))[0]


def _labels(sales: list[Sale], states: list[str]) -> Iterator[str]:
    """A sequence per year without gaps; a draft has no number yet."""
    last: dict[int, int] = {}
    for sale, state in zip(sales, states, strict=True):
        year = sale.moment.year
        last[year] = last.get(year, 0) + (state != "B")
        yield "" if state == "B" else f"F{year}-{last[year]:05d}"


def _invoice(rng: Random, label: str, sale: Sale, state: str) -> Row:
    """One row; a draft has no dates and no totals."""
    due = (sale.moment + timedelta(days=rng.choice((0, 30, 30)))).date().isoformat()
    if state == "B":
        dates, totals = (NO_DAY, NO_DAY), ("", "", "")
    else:
        dates = stamp(sale.moment), NO_DAY if rng.random() < 0.15 else due
        totals = money(sale.net), money(sale.tax), money(sale.total)
    return (label, sale.payer, state, *dates, "EUR", *totals, stamp(sale.moment))


def _line(item: Item) -> Row:
    amounts = quantity(item.tenths), money(item.cents), money(item.rate * 100), money(item.net)
    return (item.label, *amounts, f"ANIMAL:{item.animal}" if item.animal else "")


def _payments(rng: Random, today: date, sale: Sale, state: str) -> list[tuple[str, str, str]]:
    """To the cent for a settled invoice, something less for a partly paid one."""
    if state == "S":
        parts = _split(rng, sale.total)
    elif state == "P":
        parts = [sale.total * rng.randrange(20, 80) // 100]
    else:
        return []
    return [
        (stamp(_paid_on(rng, today, sale)), money(part), mode)
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
