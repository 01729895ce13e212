"""Guesses what only one resource has: names and addresses, deaths, ends, sums and batches."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from adapters.base import inside
from adapters.draft.columns import TIMES
from adapters.draft.contacts import contacts
from adapters.draft.links import in_force, linked
from adapters.draft.relations import names_key
from adapters.draft.resource import child, columns_of
from adapters.draft.sources import Guess, TableSource, literal
from adapters.draft.tables import Rows
from adapters.draft.vocabulary import PHRASES, likeness, tokens


def _clients(rows: Rows) -> None:
    contacts(rows)
    names = dict(zip(("firstName", "lastName"), _person(rows.source), strict=True))
    guessed = [rows.fields[name].column for name in names if name in rows.fields]
    if all(names.values()) and len(guessed) < 2 and not any(":" in each for each in guessed):
        for field, name in names.items():
            rows.fields[field] = rows.source.guess(str(name), 0.85, "by its name")
    last = rows.fields.get("lastName")
    if last is not None:
        rows.fields["lastName"] = _last_name(rows, last)
    address = rows.fields.get("address")
    if address is None or ":" in address.column:
        return
    used = {guess.name for name, guess in rows.fields.items() if name != "address"}
    used |= {
        column
        for column in rows.source.table.columns
        if names_key(column)[1] and rows.source.alike(column, PHRASES["postcode"]) < 0.95
    }
    used |= {*rows.source.table.key, rows.kind or ""}
    parts = dict.fromkeys(
        column
        for part in ("street", "postcode", "town")
        for column in rows.source.table.columns
        if rows.source.alike(column, PHRASES[part]) >= 0.8 and column not in used
    )
    if len(parts) > 1:
        rows.fields["address"] = _joined(address, map(rows.source.column, parts), ", ")


def _joined(guess: Guess, sql: Iterable[str], by: str = " ") -> Guess:
    return replace(guess, sql=tuple(sql), parameters={"as": "joined text", "separator": by})


def _last_name(rows: Rows, last: Guess) -> Guess:
    """Returns the last name out of `Last,First`, with a company's name or a prefix (`van der`)."""
    seen = rows.source.table.columns[last.name].seen if ":" not in last.column else ()
    values = [str(value) for value in seen if value]
    if "firstName" not in rows.fields and sum("," in v for v in values) > 0.6 * len(values):
        given = {"as": "part of text", "separator": ","}
        why = "the part behind the comma"
        first = replace(last, parameters={**given, "part": 2}, score=0.7, why=why)
        rows.fields["firstName"] = first
        last = replace(last, parameters={**given, "part": 1})
    company = rows.source.best("company", ("text",), least=0.7)
    if company not in (None, last.name) and not last.parameters:
        last = replace(last, sql=_or_company(str(last.sql), rows.source.column(str(company))))
    prefix = rows.source.best("name_prefix", ("text",), least=0.8)
    if prefix is not None and not last.parameters:
        last = _joined(last, (rows.source.column(prefix), str(last.sql)))
    return last


def _or_company(name: str, company: str) -> str:
    return f"COALESCE(NULLIF(TRIM({name}), ''), {company})"


def _person(source: TableSource) -> tuple[str | None, str | None]:
    """Returns the columns of a first and a last name; a name beside a last name is a first one."""
    first, last = (source.best(part, ("text",), least=0.7) for part in ("first_name", "last_name"))
    surname = source.best("surname", ("text",), least=0.85)
    if surname is not None and last != surname:
        return (first if first not in (None, surname) else last), surname
    if surname is not None and first in (None, surname):
        beside = [name for name in source.profiles if name != surname]
        first = source.best("full_name", ("text",), least=0.9, among=beside)
    return first, last


def _vets(rows: Rows) -> None:
    floors = {"title": 0.8, "first_name": 0.7, "name_prefix": 0.8, "last_name": 0.7}
    parts = {part: rows.source.best(part, ("text",), least=least) for part, least in floors.items()}
    first, last = _person(rows.source)
    parts |= {"first_name": first, "last_name": last}
    if first is not None and last is not None and first != last:
        name = rows.source.guess(last, 0.85, "first and last name")
        names = dict.fromkeys(part for part in parts.values() if part)
        rows.fields["name"] = _joined(name, map(rows.source.column, names))


def _patients(rows: Rows) -> None:
    source, status = rows.source, rows.fields.get("status")
    if "clientId" not in rows.fields and (owner := _owner(source, rows.key)):
        rows.fields["clientId"] = owner
    named = rows.fields.pop("death", None)
    if named is not None:
        yes = ", ".join(literal(text) for text in ("true", "1", "Y", "yes"))
        alive = f"CASE WHEN ({named.sql}) IN ({yes}) THEN 'D' ELSE 'A' END"
        given = {"codes": {"A": "ACTIVE", "D": "DECEASED"}}
        rows.fields["status"] = replace(named, sql=alive, parameters=given)
        return
    died = source.best("death", ("moment", "day", "flag"), least=0.7)
    codes = dict(status.parameters.get("codes", {})) if status else {"A": "ACTIVE"}
    if died is None or "DECEASED" in codes.values():
        return
    alive = f"ELSE {status.sql}" if status else "ELSE 'A'"
    is_own = status is not None and not status.own and status.table == rows.source.table.name
    if status and is_own and source.profiles[status.name].kind == "flag":
        alive = f"WHEN {status.sql} = {source.flag(status.name)} THEN 'A' ELSE 'I'"
        codes = {"A": "ACTIVE", "I": "INACTIVE"}
    if source.profiles[died].kind == "flag":
        is_dead = f"{source.column(died)} = {source.flag(died)}"
    else:
        is_dead = source.unset(died, is_set=True)
    sql, given = f"CASE WHEN {is_dead} THEN 'D' {alive} END", {"codes": {**codes, "D": "DECEASED"}}
    guess = source.guess(died, 0.7, f"with {died}", given, sql)
    rows.fields["status"] = replace(guess, column=status.column) if status else guess


def _owner(source: TableSource, patient: str) -> Guess | None:
    """Returns the owner through a table of who owns which animal; `patient` is the animal's key."""
    guesses: list[tuple[float, Guess]] = []
    for table in source.catalog.others:
        link = table.beside(*source.aliases)
        animal, client = link.reference("patients"), link.reference("clients")
        if animal is None or client is None or animal.column == client.column:
            continue
        score = min(animal.score, client.score) - 0.1
        alike = score + 0.1 * likeness(link.called, PHRASES["ownerships"])
        starts = link.best("starts", TIMES)
        sql = link.select(
            link.column(client.name),
            f"{link.column(animal.name)} = {patient}",
            *in_force(link),
            first_by=f"{link.column(starts or client.name)} DESC",
        )
        why = f"through {link.table.name}"
        guesses.append((alike, link.guess(client.name, score, why, sql=sql)))
    return max(guesses, key=lambda scored: scored[0])[1] if guesses else None


def _appointments(rows: Rows) -> None:
    patient = rows.fields.get("patientId")
    if "clientId" not in rows.fields and patient is not None and isinstance(patient.sql, str):
        owner = _owner_of(rows, patient.sql)
        rows.fields |= {"clientId": owner} if owner is not None else {}
    _start_and_end(rows)
    status = rows.fields.get("status")
    if status is not None and "displayStatus" not in rows.fields:
        codes = {} if status.own else status.parameters.get("codes", {})
        labels = {c: v and v.replace("_", " ").capitalize() for c, v in codes.items()}
        why = "the status in English; write it as your clients read it"
        score, why = (0.7, "the status's label") if status.own else (0.55, why)
        given = {"codes": labels} if labels else {}
        rows.fields["displayStatus"] = replace(status, why=why, score=score, parameters=given)


def _owner_of(rows: Rows, patient: str) -> Guess | None:
    """Returns the animal's owner, from the animal's row or a table of who owns which animal."""
    animals = rows.source.catalog.chosen.get("patients")
    if animals is None:
        return None
    source = animals.source.beside(*rows.source.aliases)
    owner = source.reference("clients")
    if owner is None:
        return linked(rows, "clients", patient, "patients") or _owner(rows.source, patient)
    sql = source.select(str(owner.sql), f"{source.column(animals.keys[0])} = {patient}")
    return replace(owner, sql=sql, score=owner.score - 0.1, why="the owner of the animal")


def _start_and_end(rows: Rows) -> None:
    """Makes one time of a day and a time of day, and an end of a start and minutes."""
    start, source = rows.fields.get("scheduledAt"), rows.source
    if start is None or not source.profiles[start.name].has_time:
        day = source.best("day", ("day", "moment"), least=0.5)
        clock = source.best("time_of_day", ("clock",), least=0.5)
        if day is not None and clock is not None:
            given, pattern = {"as": "local time"}, source.profiles[day].pattern
            if pattern not in (None, "%Y-%m-%d"):
                has_seconds = source.profiles[clock].longest > len("00:00")
                given["pattern"] = f"{pattern} {'%H:%M:%S' if has_seconds else '%H:%M'}"
            sql = source.column(day), source.column(clock)
            start = source.guess(day, 0.75, "a day and a time of day", given, sql)
            rows.fields["scheduledAt"] = start
    minutes = source.best("minutes", ("number", "clock"), least=0.7)
    if "endTime" not in rows.fields and minutes is not None and start is not None:
        plus = {**start.parameters, "plus": source.column(minutes)}
        end = source.guess(minutes, 0.7, "the start and the minutes", plus, start.sql)
        rows.fields["endTime"] = replace(end, others=start.others)


def _invoices(rows: Rows) -> None:
    number = rows.source.catalog.number
    _list(rows, "lines")
    payments = _list(rows, "payments")
    total, paid = rows.fields.get("total"), rows.fields.get("amountPaid")
    tax = rows.fields.get("taxTotal")
    if total is not None and tax is not None and "subtotal" not in rows.fields:
        sql = f"{number(total)} - {number(tax)}"
        rows.fields["subtotal"] = Guess(sql, 0.6, "total less tax", "total-tax", total.parameters)
    if paid is None and payments and payments.parent and "amount" in payments.fields:
        amount, is_its = payments.fields["amount"], f"{payments.parent.sql} = {rows.key}"
        sql = payments.source.select(f"SUM({number(amount)})", is_its, *payments.where)
        paid = Guess(sql, 0.75, f"the sum of {amount.column}", amount.column)
        rows.fields["amountPaid"] = paid
    if total is not None and paid is not None and "balance" not in rows.fields:
        sql = f"{number(total)} - COALESCE({number(paid)}, 0)"
        why = "total less what was paid"
        rows.fields["balance"] = Guess(sql, 0.7, why, "total-paid", total.parameters)


def _list(rows: Rows, name: str) -> Rows | None:
    """Adds the list of that name from the table whose rows belong to a record; None for none."""
    pair = child(rows, name)
    if pair is None:
        return None
    source, parent = pair
    place, shapes = f"{rows.place}.{name}", inside(rows.shapes, f"{name}[].")
    fields = columns_of(source, place, shapes, {parent.name, *source.single_key})
    patient = source.reference("patients") if "patientId" in shapes else None
    fields |= {"patientId": patient} if patient is not None else {}
    where = [*source.existing({guess.name for guess in fields.values()})]
    made = Rows(place, shapes, source, parent.score, where=where, parent=parent, fields=fields)
    rows.lists[name] = made
    return rows.lists[name]


def _stock(rows: Rows) -> None:
    number = rows.source.catalog.number
    for words in ("batches", "moves"):
        if pair := child(rows, words):
            _batches(rows, *pair)
            _moves(rows, *pair)
    if "supplier" not in rows.fields:
        _supplier(rows)
    quantity, least = rows.fields.get("quantity"), rows.fields.get("reorderThreshold")
    if quantity is None or least is None or "isLow" in rows.fields:
        return
    low = f"CASE WHEN {number(quantity)} <= {number(least)} THEN 1 ELSE 0 END"
    score = min(quantity.score, least.score)
    rows.fields["isLow"] = Guess(low, score, "quantity <= threshold", "quantity<=least")


def _batches(rows: Rows, source: TableSource, link: Guess) -> None:
    """Guesses the quantity, the next date and the number from the rows of what is in stock."""
    guesses = columns_of(source, "stock", rows.shapes, [link.name, *source.table.key])
    is_its, by = f"{link.sql} = {rows.key}", str(link.sql)
    later = [is_its]
    if expires := guesses.get("expiresAt"):
        by = str(expires.sql)
        later.append(source.unset(expires.name, is_set=True))
    for field in ("quantity", "expiresAt", "batchNumber"):
        guess = guesses.get(field)
        if guess is None or field in rows.fields:
            continue
        sql = source.select(str(guess.sql), *later, first_by=by)
        if field == "quantity":
            sql = source.select(f"COALESCE(SUM({source.catalog.number(guess)}), 0)", is_its)
        score, why = min(guess.score, 0.8), f"from {source.table.name}"
        rows.fields[field] = replace(guess, sql=sql, score=score, why=why)


def _moves(rows: Rows, source: TableSource, link: Guess) -> None:
    """Guesses a quantity out of moves from one place to another: what came in less what went."""
    quantity = source.best("quantity", ("number",), least=0.6)
    places = [each for each in source.catalog.relations.links(source) if each.column != link.name]
    pairs = [
        (one, two)
        for one in places
        for two in places
        if one.target is two.target
        and source.alike(one.column, PHRASES["move_from"]) >= 0.7
        and source.alike(two.column, PHRASES["move_to"]) >= 0.7
    ]
    if quantity is None or not pairs or not str(rows.fields["quantity"].sql).startswith("SELECT"):
        return
    place = pairs[0][0].target.beside(*rows.source.aliases, *source.aliases)
    kind = place.best("kind", ("text", "flag"), least=0.6)
    kinds = place.profiles[kind].codes if kind else ()
    ours = [code for code in kinds if likeness(tokens(code), PHRASES["stores"]) >= 0.7]
    conditions = [f"{link.sql} = {rows.key}"]
    state = source.best("status_of", ("text",), least=0.8)
    done = [
        code
        for code in (source.profiles[state].codes if state else ())
        if likeness(tokens(code), PHRASES["moved"]) >= 0.9
    ]
    conditions += [source.is_one_of(str(state), done)] if done else []
    if not kind or not ours:
        return
    amounts = []
    for leads in reversed(pairs[0]):
        at = f"{place.column(leads.key)} = {source.column(leads.column)}"
        here = f"EXISTS ({place.select('1', at, place.is_one_of(kind, ours))})"
        summed = source.select(f"COALESCE(SUM({source.column(quantity)}), 0)", *conditions, here)
        amounts.append(f"({summed})")
    sql, why = " - ".join(amounts), f"what came into {', '.join(ours)} less what went"
    rows.fields["quantity"] = replace(rows.fields["quantity"], sql=sql, score=0.7, why=why)


def _supplier(rows: Rows) -> None:
    """Guesses the name of the supplier, where the row only has its key."""
    party = rows.source.catalog.chosen.get("clients")
    if party is None or party.kind is None:
        return
    source = party.source.beside(*rows.source.aliases)
    names = [
        source.column(name)
        for part in ("company", "last_name")
        if (name := source.best(part, ("text",), least=0.7))
    ]
    for column in rows.source.table.columns:
        words, is_key = names_key(column)
        if names and is_key and likeness(words, PHRASES["suppliers"]) >= 0.7:
            name = _or_company(*names) if len(set(names)) == 2 else names[0]
            is_its = f"{source.column(party.keys[0])} = {rows.source.column(column)}"
            sql = source.select(name, is_its)
            rows.fields["supplier"] = rows.source.guess(column, 0.7, "by its name", sql=sql)


SPECIAL: Mapping[str, Callable[[Rows], None]] = {
    "appointments": _appointments,
    "clients": _clients,
    "invoices": _invoices,
    "patients": _patients,
    "stock": _stock,
    "vets": _vets,
}
