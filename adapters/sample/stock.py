"""The shelves of the sample clinic: articles, their lots, and the thresholds for ordering anew."""

from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample.people import Person
from adapters.sample.rows import (
    NO_DAY,
    YEAR,
    Row,
    changed,
    flag,
    money,
    numbered,
    quantity,
    registered,
)
from adapters.sample.vocabulary import GOODS, LEVELS, RETIRED_GOODS, Goods, Level, tax_rate


class Ware(NamedTuple):
    """What is sold over the counter: a label, a price in cents and its tax."""

    label: str
    cents: int
    rate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """ARTICLES, LOTS, CHAMPS_SUPPL without its keys, and the wares that invoices are made of."""

    articles: list[Row]
    lots: list[Row]
    extras: list[Row]
    wares: list[Ware]


def make_stock(rng: Random, today: date, suppliers: list[Person]) -> Stock:
    """All articles with a level each, shuffled so that nothing can be told from an id."""
    goods = [(item, n, True) for item in GOODS for n in range(len(item.variants))]
    retired = [(item, n, False) for item in RETIRED_GOODS for n in range(len(item.variants))]
    levels = _levels(rng, len(goods)) + LEVELS["retired"]
    pairs = list(zip(goods + retired, levels, strict=True))
    rng.shuffle(pairs)
    articles: list[Row] = []
    lots: list[Row] = []
    extras: list[Row] = []
    for number, ((item, variant, active), (tenths, threshold)) in enumerate(pairs, 1):
        article = _article(rng, number, item, variant, suppliers)
        since = registered(rng, today, oldest=6 * YEAR, newest=5)
        articles.append((number, *article, flag(active), changed(rng, since, today)))
        lots += [(number, *lot) for lot in _lots(rng, today, tenths)]
        if threshold is not None:
            extras.append(("ARTICLES", number, "SEUIL", "N", str(threshold)))
    wares = [Ware(_label(g, n), _price(g, n), tax_rate(g.family)) for g, n, _ in goods]
    return Stock(articles=articles, lots=numbered(lots), extras=extras, wares=wares)


def _levels(rng: Random, count: int) -> list[Level]:
    """The special levels, and plenty for all others; in no order."""
    levels = LEVELS["low"] + LEVELS["never_low"] + LEVELS["reversed"]
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
    rng: Random, number: int, goods: Goods, variant: int, suppliers: list[Person]
) -> tuple[str | int | None, ...]:
    """The columns from LIBELLE to EMPLACEMENT."""
    price = _price(goods, variant)
    place = f"{rng.choice('ABCDE')}{rng.randrange(1, 9)}-{rng.randrange(1, 30):02d}"
    fixed = {"STU": "COFFRE", "VAC": "FRIGO"}.get(goods.family)
    return (
        _label(goods, variant),
        goods.family,
        f"{goods.family}{number:04d}" if rng.random() < 0.92 else "",
        goods.unit,
        money(price),
        money(price * rng.randrange(52, 71) // 100),
        rng.choice(suppliers).id_pers,
        fixed or (place if rng.random() < 0.9 else rng.choice((None, ""))),
    )


def _lots(rng: Random, today: date, tenths: int) -> list[tuple[str, str, str]]:
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
        (
            f"{rng.choice('ABCDEFGH')}{rng.randrange(10**5):05d}",
            quantity(part),
            _expiry(rng, today),
        )
        for part in parts
    ]


def _expiry(rng: Random, today: date) -> str:
    """Some lots never expire, a few have already."""
    if rng.random() < 0.15:
        return NO_DAY
    return (today + timedelta(days=rng.randrange(-40, 900))).isoformat()
