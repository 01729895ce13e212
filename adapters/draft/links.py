"""Finds what stands in other tables' rows: links with roles, and which rows are meant."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from adapters.draft import vocabulary
from adapters.draft.columns import TIMES
from adapters.draft.relations import MISSING
from adapters.draft.sources import Guess, TableSource
from adapters.draft.tables import Rows
from adapters.draft.vocabulary import PHRASES, likeness, tokens

# How alike a column is to the words for a kind.
KIND = 0.6
# The share of a staff's rows that must have appointments.
AT_WORK = 0.8
# The most rows of a staff that is told apart, and the appointments that are looked at.
MOST_STAFF, MOST_APPOINTMENTS, FEWEST_APPOINTMENTS = 300, 4_000, 20


@dataclass(frozen=True, slots=True)
class _Found:
    """A column of a table of links, under the condition that its kind sets."""

    link: TableSource
    own: str
    theirs: str
    named: float
    said: str


def linked(rows: Rows, resource: str, own: str = "", place: str = "") -> Guess | None:
    """Returns the key of another resource's row through a table of links; None for none.

    `own` is the key of the record that the links lead from, of the resource at `place`; the rows'
    own where it is left out.
    """
    catalog = rows.source.catalog
    start = catalog.chosen[place] if place else rows
    target = catalog.chosen.get(resource)
    if target is None or len(target.keys) != 1 or len(start.keys) != 1:
        return None
    found = [
        each
        for other in catalog.others
        for each in _through(other.beside(*rows.source.aliases), start, target, resource)
    ]
    if not found:
        return None
    best = max(found, key=lambda each: each.named)
    rivals = [each for each in found if each is not best and each.named > best.named - 0.2]
    link = best.link
    starts = link.best("starts", TIMES)
    sql = link.select(
        link.column(best.theirs),
        f"{link.column(best.own)} = {own or start.key}",
        *link.part,
        *in_force(link, with_kind=not link.kind),
        first_by=f"{link.column(starts or best.theirs)} DESC",
    )
    proof = "" if rivals else f"every value is a key of {resource}"
    guess = link.guess(best.theirs, 0.8, f"{best.said} of {link.table.name}", sql=sql)
    return replace(guess, proof=proof)


def _through(link: TableSource, start: Rows, target: Rows, resource: str) -> Iterator[_Found]:
    relations = link.catalog.relations
    links = relations.links(link)
    ours = [each.column for each in links if each.target.table.name == start.source.table.name]
    theirs = [each.column for each in links if each.target.table.name == target.source.table.name]
    pairs = [(one, two) for one in ours for two in theirs if one != two]
    for own, its in pairs:
        for kind in _kinds(link):
            code = kind.codes[0] if kind.codes else ""
            there = relations.share(kind, its, target.source, target.keys[0])
            if there is None or there < 1 - MISSING:
                continue
            if not relations.share(start.source, start.keys[0], kind, own):
                continue
            words = [*vocabulary.REFERS[resource]]
            words += vocabulary.PARTIES["owners"] if resource == "clients" else ()
            named = max(likeness(tokens(code), words), likeness(tokens(its), words))
            yield _Found(kind, own, its, named, f"rows {code}" if code else "rows")


def _kinds(link: TableSource) -> Iterator[TableSource]:
    """Yields the links of each kind; all of them where no column tells kinds apart."""
    for column, profile in link.profiles.items():
        if profile.is_code and link.alike(column, PHRASES["kind"]) >= KIND:
            for code in profile.codes:
                yield replace(link, kind=column, codes=(code,))
            return
    yield link


def in_force(link: TableSource, *, with_kind: bool = True) -> Iterator[str]:
    """Yields the conditions that a row holds today: of an owner, not ended, not deleted."""
    for column, profile in link.profiles.items() if with_kind else ():
        owners = [
            c for c in profile.codes if likeness(tokens(c), vocabulary.PARTIES["owners"]) > 0.8
        ]
        is_kind = profile.is_code and link.alike(column, PHRASES["kind"]) >= KIND
        if is_kind and owners and len(profile.codes) > 1:
            yield link.is_one_of(column, owners[:1])
    ends = link.best("ends", ("moment", "day"))
    if ends is not None:
        yield link.unset(ends)
    yield from link.existing()


def narrow(rows: Rows) -> None:
    """Adds the conditions by which a code tells a resource's rows from others of the table."""
    _staff(rows)
    _direction(rows)
    _free(rows)


def _coded(source: TableSource) -> Iterator[tuple[str, list[str | None]]]:
    """Yields the columns of few codes, each with what the rows of the sample have.

    Those come first whose names say that they tell kinds or states apart.
    """
    said = ("kind", "status_of", "active")
    columns = sorted(
        source.profiles, key=lambda name: -max(source.alike(name, PHRASES[each]) for each in said)
    )
    for column in columns:
        codes, seen = source.profiles[column].codes, source.table.columns[column].seen
        is_code = source.profiles[column].is_code and 1 < len(codes) <= 0.6 * len(seen)
        if is_code and "." not in column and column not in source.table.key:
            yield column, [None if value is None else str(value).strip() for value in seen]


def _staff(rows: Rows) -> None:
    """Keeps the staff that has appointments, where a code tells it from the others."""
    catalog, source = rows.source.catalog, rows.source
    if rows.place != "vets" or not source.single_key or source.kind:
        return
    used = set[str]()
    for resource in ("appointments", "consultations"):
        visits = catalog.chosen.get(resource)
        guess = visits.source.reference("vets") if visits else None
        if visits is not None and guess is not None and isinstance(guess.sql, str):
            found = catalog.probe.rows(
                [visits.source.column(guess.name)], str(visits.source), limit=MOST_APPOINTMENTS
            )
            if found and len(found) >= FEWEST_APPOINTMENTS:
                used |= {str(value) for (value,) in found if value is not None}
    keys = [str(value) for value in source.table.columns[source.single_key[0]].seen]
    if not used or source.table.rows >= MOST_STAFF:
        return
    rows.used = sum(key in used for key in keys) / len(keys)
    for column, codes in _coded(source):
        at_work = {code for code, key in zip(codes, keys, strict=True) if key in used}
        meant = [key for code, key in zip(codes, keys, strict=True) if code in at_work]
        share = sum(key in used for key in meant) / max(1, len(meant))
        if None not in at_work and share >= AT_WORK > rows.used and len(meant) < len(keys):
            rows.used = share
            rows.where.append(source.is_one_of(column, sorted(map(str, at_work))))
            rows.told_by.append(f"{column} tells those with appointments")
            return


def _direction(rows: Rows) -> None:
    """Keeps the invoices of clients, where a code tells them from those of suppliers."""
    source, target = rows.source, rows.source.catalog.chosen.get("clients")
    if rows.place != "invoices" or target is None or source.kind:
        return
    guess = source.reference("clients")
    if guess is None or guess.proof:
        return
    _, key = source.catalog.relations.through_party(source, guess.name, target)
    for column, profile in source.profiles.items():
        if not profile.is_code or len(profile.codes) < 2 or column == guess.name:
            continue
        shares = {
            code: source.catalog.relations.share(
                source, guess.name, target.source, key, source.is_one_of(column, [code])
            )
            for code in profile.codes
        }
        ours = [code for code, share in shares.items() if share and share >= 1 - MISSING]
        others = [code for code, share in shares.items() if share is not None and share <= MISSING]
        if ours and others and len(ours) + len(others) == len(shares):
            rows.where.append(source.is_one_of(column, ours))
            rows.told_by.append(f"{column} tells the invoices of clients")
            return


def _free(rows: Rows) -> None:
    """Leaves out rows that stand for free times, which a code tells: they have no animal."""
    source = rows.source
    guess = source.reference("patients") if rows.place == "appointments" else None
    if guess is None or not isinstance(guess.sql, str) or guess.table != source.table.name:
        return
    animals = source.table.columns[guess.name].seen
    if None not in animals or not any(animals):
        return
    for column, codes in _coded(source):
        free = {code for code, animal in zip(codes, animals, strict=True) if animal is None}
        taken = {code for code, animal in zip(codes, animals, strict=True) if animal is not None}
        if free and None not in free and free.isdisjoint(taken):
            rows.free = (column, tuple(sorted(map(str, free))))
            kept = source.is_one_of(column, rows.free[1])
            rows.where.append(f"NOT ({kept})")
            rows.told_by.append(f"{column} tells the free times")
            return
