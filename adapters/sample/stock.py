"""Makes the stock of the sample clinic: articles, their lots, and thresholds for ordering."""

from datetime import timedelta

from adapters.sample.rows import NO_DAY, YEAR, Chance, Row, flag, money, numbered, quantity
from adapters.sample.vocabulary import GOODS, LEVELS, RETIRED_GOODS, Goods, Ware


def make_stock(
    rng: Chance, suppliers: list[Row]
) -> tuple[list[Row], list[Row], list[Row], list[Ware]]:
    """Returns ARTICLES, LOTS, the thresholds for CHAMPS_SUPPL, and the wares that are sold."""
    goods, retired = (
        [(item, ware) for item in items for ware in item.wares()]
        for items in (GOODS, RETIRED_GOODS)
    )
    # special levels, then plenty for the others; shuffled, so that an id tells nothing
    levels = LEVELS["low"] + LEVELS["never_low"] + LEVELS["reversed"]
    while len(levels) < len(goods):
        least, half = rng.randrange(2, 15), rng.choice((0, 0, 0, 5))
        levels.append((10 * (least + rng.randrange(1, 60)) + half, least))
    rng.shuffle(levels)
    pairs = list(zip(goods + retired, levels + LEVELS["retired"], strict=True))
    rng.shuffle(pairs)
    articles, lots, extras = list[Row](), list[Row](), list[Row]()
    for number, ((item, ware), (tenths, threshold)) in enumerate(pairs, 1):
        articles.append(_article(rng, number, item, ware, suppliers))
        lots += [(number, *lot) for lot in _lots(rng, tenths)]
        if threshold is not None:
            extras.append(("ARTICLES", number, "SEUIL", "N", str(threshold)))
    return articles, numbered(lots), extras, [ware for _, ware in goods]


def _article(rng: Chance, number: int, goods: Goods, ware: Ware, suppliers: list[Row]) -> Row:
    place = f"{rng.choice('ABCDE')}{rng.randrange(1, 9)}-{rng.randrange(1, 30):02d}"
    fixed = {"STU": "COFFRE", "VAC": "FRIGO"}.get(goods.family)
    return (
        number,
        ware.label,
        goods.family,
        f"{goods.family}{number:04d}" if rng.random() < 0.92 else "",
        goods.unit,
        money(ware.cents),
        money(ware.cents * rng.randrange(52, 71) // 100),
        rng.choice(suppliers).id_pers,
        fixed or (place if rng.random() < 0.9 else rng.choice((None, ""))),
        flag(goods not in RETIRED_GOODS),
        rng.changed(rng.registered(oldest=6 * YEAR, newest=5)),
    )


def _lots(rng: Chance, tenths: int) -> list[Row]:
    """Returns up to three lots that add up to the stock; some never expire, a few have expired."""
    if not tenths:
        return []
    parts = [tenths]
    for _ in range(rng.choices((0, 1, 2), (45, 35, 20))[0]):
        if parts[-1] > 20:
            part = 10 * rng.randrange(1, parts[-1] // 10)
            parts[-1:] = [part, parts[-1] - part]
    if len(parts) == 1 and rng.random() < 0.06:
        parts = [tenths + 10, -10]  # a count put right by a negative lot
    lots: list[Row] = []
    for part in parts:
        name = f"{rng.choice('ABCDEFGH')}{rng.randrange(10**5):05d}"
        ends = rng.random() >= 0.15 and rng.today + timedelta(days=rng.randrange(-40, 900))
        lots.append((name, quantity(part), ends.isoformat() if ends else NO_DAY))
    return lots
