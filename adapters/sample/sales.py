"""What the sample clinic sells: visits to the consulting room and goods over the counter."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample.bookings import Booking
from adapters.sample.catalogue import ACTS, COMPLEMENTS, CONSULTATION
from adapters.sample.consults import Consult
from adapters.sample.owners import Herd
from adapters.sample.people import Person
from adapters.sample.stock import Ware
from adapters.sample.values import awake, desk_moment, opening_moment, unstamp

SALES = 1500
FROM_VISITS = 1050
CREDITS = 9
OTHER_PAYER = 0.05  # a relative, a breeder: not the animal's owner


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
    bookings: list[Booking]
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
        and (owner := shop.herd.owner_on(row.id_animal, unstamp(row.d_debut).date())) is not None
    ]
    for row, owner in rng.sample(owned, FROM_VISITS):
        kind = (row.id_rdv and kinds[row.id_rdv]) or CONSULTATION.id_type
        payer = rng.choice(shop.clients).id_pers if rng.random() < OTHER_PAYER else owner
        moment = awake(unstamp(row.d_debut) + timedelta(minutes=rng.randrange(25, 50)))
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
