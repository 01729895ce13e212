"""Makes the consultations, invoices and payments of the sample clinic."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from adapters.sample import vocabulary as words
from adapters.sample.diary import DeskBooking, Roster
from adapters.sample.people import Herd
from adapters.sample.rows import (
    NO_DAY,
    NO_MOMENT,
    Chance,
    Row,
    awake,
    money,
    numbered,
    quantity,
    row_of,
    stamp,
)

KEPT = 1200
DELETED = 15
WALK_INS = 60
FORGOTTEN = 12  # recent ones that nobody has validated yet
FORGOTTEN_DAYS = 45

SALES = 1500
FROM_VISITS = 1050
CREDITS = 9
OTHER_PAYER = 0.05  # such as a relative or a breeder
DRAFTS = 40
DRAFTS_AMONG = 120  # drafts are recent

Consult = row_of("CONSULTATIONS")


def make_consults(rng: Chance, bookings: list[Row], roster: Roster, herd: Herd) -> list[Row]:
    """Returns the rows of CONSULTATIONS by time: of visits past and running, and of walk-ins."""
    running, done = ([row for row in bookings if row.statut == it and row.id_veto] for it in "ET")
    walk_ins = [_walk_in(rng, roster, herd) for _ in range(WALK_INS)]
    chosen = rng.sample(done, KEPT + DELETED - WALK_INS - len(running))
    rows = [_consult(rng, visit) for visit in chosen + walk_ins]
    for place in rng.sample(range(len(rows)), DELETED):
        rows[place] = rows[place]._replace(supprime=1)
    # some recent ones stay open, as with busy vets
    since = rng.ago(FORGOTTEN_DAYS).isoformat()
    recent = [place for place, row in enumerate(rows) if row.d_debut > since and not row.supprime]
    in_progress = [*rng.sample(recent, FORGOTTEN), *range(len(rows), len(rows) + len(running))]
    rows += [_consult(rng, visit) for visit in running]
    for place in in_progress:  # there is no diagnosis yet
        rows[place] = rows[place]._replace(etat="E", d_valid=NO_MOMENT, diagnostic="")
    rows.sort(key=lambda row: (row.d_debut, row.id_veto, row.id_animal))
    return [row._replace(id_cons=number) for number, row in enumerate(rows, 1)]


def _walk_in(rng: Chance, roster: Roster, herd: Herd) -> Row:
    """Returns a visit to a vet on duty without a booking, on a day of the last two years."""
    while True:
        day = rng.ago(rng.randrange(1, 700))
        sheets = roster.sheets(day, day)
        animal = rng.choice(herd.animals)
        if sheets and herd.patient_on(animal, day, planned=False):
            sheet = rng.choice(sheets)
            start = stamp(rng.choice(sheet.quarters))
            return DeskBooking(id_animal=animal.id_animal, id_veto=sheet.vet, d_debut=start)


def _consult(rng: Chance, visit: Row) -> Row:
    start = datetime.fromisoformat(visit.d_debut)
    start += timedelta(minutes=rng.randrange(10), seconds=rng.randrange(60))
    end = start + timedelta(minutes=rng.choice((15, 20, 35, 60, 24 * 60)))
    case = rng.choice(words.CASES.get(visit.id_type, words.CASES[words.CONSULTATION.id_type]))
    measured = f" Température {rng.randrange(379, 396) / 10:.1f} °C.".replace(".", ",", 1)
    return Consult(
        id_rdv=visit.id_rdv,
        id_animal=visit.id_animal,
        id_veto=visit.id_veto,
        etat="V",
        importance=rng.choices("123", (60, 30, 10))[0],
        d_debut=stamp(start),
        d_valid=stamp(awake(min(end, rng.now))),
        resume=case.summary + (measured if rng.random() < 0.4 else ""),
        diagnostic=case.diagnosis,
        consignes=case.advice,
        notes_internes=rng.choice(words.INTERNAL_NOTES),
        supprime=0,
        dt_creation=stamp(start),
    )


class Item(NamedTuple):
    """One line of an invoice; its quantity is in tenths, and negative on a credit note."""

    ware: words.Ware
    tenths: int
    animal: int | None

    @property
    def net(self) -> int:
        return self.tenths * self.ware.cents // 10

    @property
    def amounts(self) -> tuple[str, ...]:
        """The quantity, the price, the tax in percent and the sum without tax, as texts."""
        return quantity(self.tenths), *map(money, (self.ware.cents, self.ware.rate * 100, self.net))


class Sale(NamedTuple):
    """The content of one invoice; `credit` marks a credit note."""

    moment: datetime
    payer: int
    items: list[Item]
    credit: bool = False

    @property
    def totals(self) -> tuple[int, int, int]:
        """The sum without tax, the tax, and the sum with it, in cents."""
        net = sum(item.net for item in self.items)
        tax = sum(item.net * item.ware.rate // 100 for item in self.items)
        return net, tax, net + tax


def make_sales(
    rng: Chance,
    clients: list[Row],
    wares: list[words.Ware],
    herd: Herd,
    bookings: list[Row],
    consults: list[Row],
) -> list[Sale]:
    """Returns all sales by time: of most visits and over the counter, and a few credit notes."""
    kinds = {row.id_rdv: row.id_type for row in bookings}
    owners = [(row, herd.owner_on(row.id_animal, row.d_debut[:10])) for row in consults]
    owned = [(row, owner) for row, owner in owners if owner is not None and not row.supprime]
    sales = []
    for row, owner in rng.sample(owned, FROM_VISITS):
        kind = (row.id_rdv and kinds[row.id_rdv]) or words.CONSULTATION.id_type
        payer = rng.choice(clients).id_pers if rng.random() < OTHER_PAYER else owner
        start = datetime.fromisoformat(row.d_debut)
        moment = awake(start + timedelta(minutes=rng.randrange(25, 50)))
        # the act, what was done besides, and what they took home
        animal, items = row.id_animal, [Item(rng.choice(words.ACTS[kind]), 10, row.id_animal)]
        besides = rng.sample(words.COMPLEMENTS, rng.choices((0, 1, 2), (50, 35, 15))[0])
        items += [Item(a, rng.choice((5, 10, 15, 25)) if a.halves else 10, animal) for a in besides]
        taken = _sold(rng, wares, rng.choices((0, 1, 2), (55, 30, 15))[0])
        items += [item._replace(animal=rng.choice((animal, None))) for item in taken]
        sales.append(Sale(min(moment, rng.now), payer, items))
    while len(sales) < SALES - CREDITS:  # goods only, for no animal
        day = rng.ago(rng.randrange(1, 730))
        day -= timedelta(days=1 if day.isoweekday() == 7 else 0)
        payer, moment = rng.choice(clients).id_pers, rng.at_desk(day)
        sales.append(Sale(moment, payer, _sold(rng, wares, rng.choice((1, 1, 2, 3, 4, 5)))))
    for sale in rng.sample(sales, CREDITS):  # a credit note for the first lines, some days later
        moment = min(sale.moment + timedelta(days=rng.randrange(1, 30)), rng.now)
        items = [item._replace(tenths=-item.tenths) for item in sale.items[:2]]
        sales.append(Sale(moment, sale.payer, items, credit=True))
    return sorted(sales, key=lambda sale: (sale.moment, sale.payer))


def _sold(rng: Chance, wares: list[words.Ware], count: int) -> list[Item]:
    amounts = (10, 10, 10, 20, 30, 120)
    return [Item(ware, rng.choice(amounts), None) for ware in rng.sample(wares, count)]


def make_accounts(rng: Chance, sales: list[Sale]) -> dict[str, list[Row]]:
    """Returns the rows of FACTURES, LIGNES_FACT and REGLEMENTS: one invoice for each sale.

    `sales` are sorted by time. Invoices are numbered in each year without gaps; a draft has no
    number, no dates of its own and no totals.
    """
    recent = range(len(sales) - DRAFTS_AMONG, len(sales))
    drafts = set(rng.sample([n for n in recent if not sales[n].credit], DRAFTS))
    states = ["B" if n in drafts else _state(rng, sale) for n, sale in enumerate(sales)]
    billed = list(enumerate(zip(sales, states, strict=True), 1))
    last, invoices = Counter[int](), list[Row]()
    for _, (sale, state) in billed:
        year, made = sale.moment.year, stamp(sale.moment)
        due = (sale.moment + timedelta(days=rng.choice((0, 30, 30)))).date().isoformat()
        if state == "B":
            kept: Row = ("", sale.payer, state, NO_DAY, NO_DAY, "EUR", "", "", "", made)
        else:
            last[year] += 1
            due = NO_DAY if rng.random() < 0.15 else due
            label, sums = f"F{year}-{last[year]:05d}", map(money, sale.totals)
            kept = (label, sale.payer, state, made, due, "EUR", *sums, made)
        invoices.append(kept)
    lines = [
        (n, item.ware.label, *item.amounts, f"ANIMAL:{item.animal}" if item.animal else "")
        for n, (sale, _) in billed
        for item in sale.items
    ]
    paid = [(n, *payment) for n, bill in billed for payment in _payments(rng, *bill)]
    paid.sort(key=lambda payment: (payment[1], payment[0]))
    return {
        "FACTURES": numbered(invoices),
        "LIGNES_FACT": numbered(lines),
        "REGLEMENTS": numbered(paid),
    }


def _state(rng: Chance, sale: Sale) -> str:
    """Returns the state of an issued invoice; most old ones are settled (S)."""
    if sale.credit:
        return rng.choice("SE")
    old = (rng.today - sale.moment.date()).days > 60
    return rng.choices("SPEA", (89, 4, 4, 3) if old else (62, 11, 24, 3))[0]


def _payments(rng: Chance, sale: Sale, state: str) -> Iterator[tuple[str, str, str]]:
    """Yields the moment, amount and mode of each payment of an invoice in that state."""
    parts, total = [], sale.totals[-1]
    if state == "S":
        count, parts = rng.choices((1, 2, 3), (86, 10, 4))[0], [total]
        if count > 1 and total >= 2000:
            share = total * rng.randrange(70, 115) // (100 * count)
            parts = [share] * (count - 1) + [total - share * (count - 1)]
    elif state == "P":
        parts = [total * rng.randrange(20, 80) // 100]
    for part in parts:  # at the desk right away, or some weeks later
        mode = rng.choices(("CB", "CH", "ES", "VI"), (60, 15, 15, 10))[0]
        later = timedelta(days=rng.choice((0, 0, 0, 5, 12, 28, 41)), minutes=4)
        yield stamp(min(sale.moment + later, rng.now)), money(part), mode
