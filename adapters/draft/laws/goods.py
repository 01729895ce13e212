"""Proves invoices and stock: by sums, and by what is there once."""

from collections import defaultdict

from adapters.draft.clocks import said_of
from adapters.draft.laws.sample import FEWEST, Law, Sample, Samples

CENT, CENTS = 0.015, 0.06


def _sums(sample: Sample, samples: Samples) -> None:
    """Proves net, tax and total: they add up, and the tax is the lesser part."""
    del samples
    if not sample.has("subtotal", "taxTotal", "total"):
        return
    net, tax, total = map(sample.numbers, ("subtotal", "taxTotal", "total"))
    adds = sample.holds(lambda a, b, c: abs(a + b - c) < CENT, net, tax, total)
    is_own = sample.rows.fields["subtotal"].column != "total-tax"
    is_rate = sample.holds(lambda a, b: abs(b) <= 0.5 * abs(a), net, tax)
    if adds and is_rate and (is_own or sample.is_named("taxTotal")):
        sample.prove("net and tax add up to the total", "subtotal", "taxTotal", "total")


def _paid(sample: Sample, samples: Samples) -> None:
    """Proves what is paid and what is left: they add up to the total, and much is paid."""
    del samples
    if not sample.has("amountPaid", "balance", "total") or not sample.is_proven("total"):
        return
    paid, left, total = map(sample.numbers, ("amountPaid", "balance", "total"))
    given = [value or 0.0 for value in paid]
    adds = sample.holds(lambda a, b, c: abs(a + b - c) < CENT, given, left, total)
    fits = sample.holds(lambda a, c: -CENT <= a <= c + CENT, given, total, share=0.05)
    is_much = sum(given) > 0.2 * sum(value or 0.0 for value in total)
    guess = sample.rows.fields["amountPaid"]
    is_its = str(guess.sql).startswith("SELECT SUM") or sample.is_named("amountPaid")
    if adds and fits and is_much and is_its:
        sample.prove("paid and balance add up to the total", "amountPaid", "balance")


def _bills(sample: Sample, samples: Samples) -> None:
    del samples
    if sample.has("number") and sample.is_named("number") and sample.is_unique("number"):
        sample.prove("every number is there once", "number")
    if not sample.is_dated("issuedAt"):
        return
    said, is_named = said_of(sample.rows, "issuedAt"), sample.is_named("issuedAt", 0.8)
    if sample.has("dueAt") and sample.is_named("dueAt", 0.8) and is_named:
        times = sample.times("issuedAt"), sample.times("dueAt")
        if sample.holds(lambda issued, due: issued.date() <= due.date(), *times):
            sample.prove(f"issued before due, {said}", "issuedAt", "dueAt")
    if sample.is_named("issuedAt") and sample.is_past("issuedAt"):
        sample.prove(f"none is later than now, {said}", "issuedAt")


def _lists(sample: Sample, samples: Samples) -> None:
    del samples
    lists = sample.rows.lists
    if "lines" in lists:
        lines = Sample(lists["lines"], sample.now)
        _lines(lines)
        _rates(lines, sample)
    if "payments" in lists:
        _payments(Sample(lists["payments"], sample.now))


def _lines(sample: Sample) -> None:
    if not sample.has("quantity", "unitPrice", "total"):
        return
    amounts = [sample.numbers(name) for name in ("quantity", "unitPrice", "total")]
    is_named = sample.is_named("quantity", 0.7) or sample.is_named("unitPrice", 0.7)
    if is_named and sample.holds(lambda a, b, c: abs(a * b - c) < 2 * CENT, *amounts):
        law = "quantity times price is the line's total"
        sample.prove(law, "quantity", "unitPrice", "total")
        sample.rows.proof = law
    is_text = sample.has("description") and sample.is_named("description", 0.8)
    if is_text and len(sample.texts("description")) >= 0.95 * sample.number:
        sample.prove("every line has a text", "description")


def _rates(sample: Sample, bills: Sample) -> None:
    """Proves the lines' tax rates: the taxes that they make add up to the invoice's."""
    if not sample.has("taxRate", "total") or not bills.has("taxTotal"):
        return
    taxes: dict[str, float] = defaultdict(float)
    parts = (sample.raw["parent"], sample.numbers("total"), sample.numbers("taxRate"))
    for parent, total, rate in zip(*parts, strict=True):
        taxes[str(parent[0])] += (total or 0) * (rate or 0) / 100
    ours = [taxes.get(str(raw[0])) for raw in bills.raw["key"]]
    theirs = bills.numbers("taxTotal")
    if bills.holds(lambda mine, tax: abs(mine - tax) < CENTS, ours, theirs, share=0.05):
        sample.prove("the lines' taxes add up to the invoice's", "taxRate")


def _payments(sample: Sample) -> None:
    is_amount = sample.has("amount") and sample.is_named("amount", 0.9)
    if is_amount and sample.holds(lambda amount: amount != 0, sample.numbers("amount")):
        sample.prove("every payment is of some amount", "amount")
        sample.rows.proof = "payments of amounts"
    if sample.is_dated("paidAt") and sample.is_named("paidAt", 0.9) and sample.is_past("paidAt"):
        sample.prove(f"none is later than now, {said_of(sample.rows, 'paidAt')}", "paidAt")
    if sample.has("method") and sample.is_named("method") and sample.is_few("method", 20):
        sample.prove("few kinds, each a word", "method")


def _articles(sample: Sample, samples: Samples) -> None:
    del samples
    for name in ("name", "reference"):
        if sample.has(name) and sample.is_named(name, 0.9) and sample.is_unique(name):
            sample.prove("every value is there once", name)
    for name in ("category", "unit", "location"):
        if sample.has(name) and sample.is_named(name, 0.9) and sample.is_few(name):
            sample.prove("few kinds, each a word", name)
    is_day = sample.has("expiresAt") and sample.is_named("expiresAt", 0.9)
    if is_day and sample.holds(lambda day: 2000 < day.year < 2100, sample.times("expiresAt")):
        sample.prove("every value is a day", "expiresAt")


def _amounts(sample: Sample, samples: Samples) -> None:
    """Proves what is there and what is least: an article's own number, hardly below 0."""
    del samples
    for name in ("quantity", "reorderThreshold"):
        if not sample.has(name) or not sample.is_named(name, 0.9):
            continue
        is_own = "SELECT" not in str(sample.rows.fields[name].sql)
        if is_own and sample.holds(lambda number: number >= 0, sample.numbers(name), share=0.1):
            sample.prove("one number for each article", name)
    if sample.is_proven("quantity", "reorderThreshold"):
        sample.prove("quantity beside threshold", "isLow")


def _prices(sample: Sample, samples: Samples) -> None:
    del samples
    if not sample.has("salePrice", "purchasePrice"):
        return
    prices = sample.numbers("purchasePrice"), sample.numbers("salePrice")
    named = sample.is_named("salePrice", 0.8) and sample.is_named("purchasePrice", 0.8)
    if named and sample.holds(lambda cost, sale: 0 <= cost <= sale, *prices, share=0.1):
        sample.prove("sold for more than bought", "salePrice", "purchasePrice")


def invoices_table(sample: Sample, samples: Samples) -> str:
    """Returns why the table is that of invoices; nothing where that is not proven."""
    del samples
    is_one = sample.is_proven("total", "clientId")
    return "clients and totals that add up" if is_one else ""


def stock_table(sample: Sample, samples: Samples) -> str:
    """Returns why the table is the stock's; nothing where that is not proven."""
    del samples
    has_amount = {"quantity", "salePrice"} & {*sample.rows.fields}
    is_one = sample.is_proven("name") and has_amount and sample.number >= FEWEST
    return "articles, each there once" if is_one else ""


INVOICES: tuple[Law, ...] = (_sums, _paid, _bills, _lists)
STOCK: tuple[Law, ...] = (_articles, _amounts, _prices)
