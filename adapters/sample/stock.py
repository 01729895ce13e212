"""The shelves of the sample clinic: articles, their lots, and the thresholds for ordering anew."""

from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample.catalogue import GOODS, RETIRED_GOODS, Goods, tax_rate
from adapters.sample.people import Person
from adapters.sample.values import (
    NO_DAY,
    YEAR,
    Extra,
    changed,
    flag,
    money,
    quantity,
    registered,
)

Level = tuple[int, int | None]  # stock in tenths, threshold in whole units or none

# Low: 15 articles. The first three are missed by whoever compares texts: '9' > '10'.
LOW: tuple[Level, ...] = (
    (90, 10),
    (80, 12),
    (70, 20),
    (0, 5),
    (0, 3),
    (25, 3),
    (40, 4),
    (10, 2),
    (20, 5),
    (30, 8),
    (10, 4),
    (60, 6),
    (20, 3),
    (50, 9),
    (30, 3),
)
NEVER_LOW: tuple[Level, ...] = tuple((units * 10, None) for units in (0, 0, 0, 1, 2, 4, 15, 30))
REVERSED: tuple[Level, ...] = ((100, 9), (120, 8), (1000, 20))  # low only as texts: '10' < '9'
RETIRED: tuple[Level, ...] = ((0, 4), (10, 5), (0, None), (20, 10), (60, 2), (0, None))


class Article(NamedTuple):
    """A row of ARTICLES."""

    id_art: int
    libelle: str
    famille: str
    reference: str
    unite: str
    prix_vente: str
    prix_achat: str
    id_fourn: int
    emplacement: str | None
    actif: str
    dt_modif: str | None


class Lot(NamedTuple):
    """A row of LOTS."""

    id_lot: int
    id_art: int
    num_lot: str
    qte: str
    d_peremption: str


class Ware(NamedTuple):
    """What is sold over the counter: a label, a price in cents and its tax."""

    label: str
    cents: int
    rate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """The rows of the shelves, and the wares that invoices are made of."""

    articles: list[Article]
    lots: list[Lot]
    extras: list[Extra]
    wares: list[Ware]


def make_stock(rng: Random, today: date, suppliers: list[Person]) -> Stock:
    """All articles with a level each, shuffled so that nothing can be told from an id."""
    goods = [(item, n, True) for item in GOODS for n in range(len(item.variants))]
    retired = [(item, n, False) for item in RETIRED_GOODS for n in range(len(item.variants))]
    levels = _levels(rng, len(goods))
    pairs = list(zip(goods + retired, levels + list(RETIRED), strict=True))
    rng.shuffle(pairs)
    articles, lots, extras = [], [], []
    for number, ((item, variant, active), (tenths, threshold)) in enumerate(pairs, 1):
        articles.append(_article(rng, today, number, item, variant, active, suppliers))
        lots += _lots(rng, today, number, tenths)
        if threshold is not None:
            extras.append(Extra(0, "ARTICLES", number, "SEUIL", "N", str(threshold)))
    return Stock(
        articles=articles,
        lots=[lot._replace(id_lot=number) for number, lot in enumerate(lots, 1)],
        extras=extras,
        wares=[Ware(_label(g, n), _price(g, n), tax_rate(g.family)) for g, n, _ in goods],
    )


def _levels(rng: Random, count: int) -> list[Level]:
    """The special levels, and plenty for all others; in no order."""
    levels = list(LOW + NEVER_LOW + REVERSED)
    while len(levels) < count:
        threshold = rng.randrange(2, 15)
        half = rng.choice((0, 0, 0, 5))
        levels.append((10 * (threshold + rng.randrange(1, 60)) + half, threshold))
    rng.shuffle(levels)
    return levels


def _label(goods: Goods, variant: int) -> str:
    return goods.label.format(goods.variants[variant])


def _price(goods: Goods, variant: int) -> int:
    """Bigger ones cost more; still on a step of ten cents."""
    return (goods.cents * (10 + 6 * variant) // 100) * 10


def _article(
    rng: Random,
    today: date,
    number: int,
    goods: Goods,
    variant: int,
    active: bool,
    suppliers: list[Person],
) -> Article:
    price = _price(goods, variant)
    place = f"{rng.choice('ABCDE')}{rng.randrange(1, 9)}-{rng.randrange(1, 30):02d}"
    fixed = {"STU": "COFFRE", "VAC": "FRIGO"}.get(goods.family)
    return Article(
        id_art=number,
        libelle=_label(goods, variant),
        famille=goods.family,
        reference=f"{goods.family}{number:04d}" if rng.random() < 0.92 else "",
        unite=goods.unit,
        prix_vente=money(price),
        prix_achat=money(price * rng.randrange(52, 71) // 100),
        id_fourn=rng.choice(suppliers).id_pers,
        emplacement=fixed or (place if rng.random() < 0.9 else rng.choice((None, ""))),
        actif=flag(active),
        dt_modif=changed(rng, registered(rng, today, oldest=6 * YEAR, newest=5), today),
    )


def _lots(rng: Random, today: date, article: int, tenths: int) -> list[Lot]:
    """One to three lots that sum up to the stock; none at all for none."""
    if not tenths:
        return []
    parts = [tenths]
    for _ in range(rng.choices((0, 1, 2), (45, 35, 20))[0]):
        if parts[-1] > 20:
            part = 10 * rng.randrange(1, parts[-1] // 10)
            parts[-1:] = [part, parts[-1] - part]
    if len(parts) == 1 and rng.random() < 0.06:
        parts = [tenths + 10, -10]  # a count put right by a negative lot
    return [
        Lot(0, article, _lot_number(rng), quantity(part), _expiry(rng, today)) for part in parts
    ]


def _lot_number(rng: Random) -> str:
    return f"{rng.choice('ABCDEFGH')}{rng.randrange(10**5):05d}"


def _expiry(rng: Random, today: date) -> str:
    """Some lots never expire, a few have already."""
    if rng.random() < 0.15:
        return NO_DAY
    return (today + timedelta(days=rng.randrange(-40, 900))).isoformat()
