"""What is known of one resource alone: names and addresses, deaths, ends, sums and batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from adapters.draft.columns import TIMES
from adapters.draft.document import Guess, RowsGuess
from adapters.draft.resource import ResourceGuess, columns_of, rows_of
from adapters.draft.tables import TableSource, names_key
from adapters.draft.vocabulary import PARTIES, PHRASES, likeness, tokens


def _clients(of: ResourceGuess) -> None:
    last = of.fields.get("lastName")
    if last is not None:
        of.fields["lastName"] = _last_name(of, last)
    address = of.fields.get("address")
    if address is None or ":" in address.column:
        return
    used = {guess.name for name, guess in of.fields.items() if name != "address"}
    used |= {column for column in of.table.columns if names_key(column)[1]}
    used |= {*of.table.key, of.chosen.kind or ""}
    parts = dict.fromkeys(
        column
        for part in ("street", "postcode", "town")
        for column in of.table.columns
        if of.source.alike(column, PHRASES[part]) >= 0.8 and column not in used
    )
    if len(parts) > 1:
        of.fields["address"] = _joined(address, map(of.source.column, parts), ", ")


def _joined(guess: Guess, sql: Iterable[str], by: str = " ") -> Guess:
    """The columns as one text."""
    return replace(guess, sql=tuple(sql), parameters={"as": "joined text", "separator": by})


def _last_name(of: ResourceGuess, last: Guess) -> Guess:
    """One column such as `Last,First`; companies; a prefix such as `van der` in its own column."""
    seen = of.table.columns[last.name].seen if ":" not in last.column else ()
    values = [str(each) for each in seen if each]
    if "firstName" not in of.fields and sum("," in v for v in values) > 0.6 * len(values):
        given = {"as": "part of text", "separator": ","}
        why = "the part behind the comma"
        first = replace(last, parameters={**given, "part": 2}, score=0.7, why=why)
        of.fields["firstName"] = first
        last = replace(last, parameters={**given, "part": 1})
    company = of.source.best("company", ("text",), least=0.7)
    if company not in (None, last.name) and not last.parameters:
        last = replace(last, sql=_or_company(str(last.sql), of.source.column(str(company))))
    prefix = of.source.best("name_prefix", ("text",), least=0.8)
    if prefix is not None and not last.parameters:
        last = _joined(last, (of.source.column(prefix), str(last.sql)))
    return last


def _or_company(name: str, company: str) -> str:
    return f"COALESCE(NULLIF(TRIM({name}), ''), {company})"


def _vets(of: ResourceGuess) -> None:
    wanted = {"title": 0.8, "first_name": 0.7, "name_prefix": 0.8, "last_name": 0.7}
    parts = {part: of.source.best(part, ("text",), least=least) for part, least in wanted.items()}
    first, last = parts["first_name"], parts["last_name"]
    if first is not None and last is not None and first != last:
        name = of.source.guess(last, 0.85, "first and last name")
        names = dict.fromkeys(part for part in parts.values() if part)
        of.fields["name"] = _joined(name, map(of.source.column, names))


def _patients(of: ResourceGuess) -> None:
    source, status = of.source, of.fields.get("status")
    if "clientId" not in of.fields and (found := _owner(source, of.key)):
        of.fields["clientId"] = found
    died = source.best("death", ("moment", "day", "flag"), least=0.7)
    codes = dict(status.parameters.get("codes", {})) if status else {"A": "ACTIVE"}
    if died is None or "DECEASED" in codes.values():
        return
    alive = f"ELSE {status.sql}" if status else "ELSE 'A'"
    is_own = status is not None and not status.own and status.table == of.table.name
    if status and is_own and source.profiles[status.name].kind == "flag":
        alive = f"WHEN {status.sql} = {source.flag(status.name)} THEN 'A' ELSE 'I'"
        codes = {"A": "ACTIVE", "I": "INACTIVE"}
    if source.profiles[died].kind == "flag":
        is_dead = f"{source.column(died)} = {source.flag(died)}"
    else:
        is_dead = source.unset(died, is_set=True)
    sql, given = f"CASE WHEN {is_dead} THEN 'D' {alive} END", {"codes": {**codes, "D": "DECEASED"}}
    guess = source.guess(died, 0.7, f"with {died}", given, sql)
    of.fields["status"] = replace(guess, column=status.column) if status else guess


def _owner(source: TableSource, patient: str) -> Guess | None:
    """The owner through a table of who owns which animal; `patient` is the animal's key."""
    found: list[tuple[float, Guess]] = []
    for table in source.catalog.others:
        link = table.beside(source.alias)
        animal, client = link.reference("patients"), link.reference("clients")
        if animal is None or client is None or animal.column == client.column:
            continue
        score = min(animal.score, client.score) - 0.1
        alike = score + 0.1 * likeness(link.called, PHRASES["ownerships"])
        starts = link.best("starts", TIMES)
        sql = link.select(
            link.column(client.name),
            f"{link.column(animal.name)} = {patient}",
            *_in_force(link),
            first_by=f"{link.column(starts or client.name)} DESC",
        )
        why = f"through {link.table.name}"
        found.append((alike, link.guess(client.name, score, why, sql=sql)))
    return max(found, key=lambda each: each[0])[1] if found else None


def _in_force(link: TableSource) -> Iterator[str]:
    """That a row holds today: of an owner, not ended, not deleted."""
    for column, profile in link.profiles.items():
        owners = [c for c in profile.codes if likeness(tokens(c), PARTIES["owners"]) > 0.8]
        is_kind = profile.is_code and link.alike(column, PHRASES["kind"]) >= 0.6
        if is_kind and owners and len(profile.codes) > 1:
            yield link.is_one_of(column, owners[:1])
    ends = link.best("ends", ("moment", "day"))
    if ends is not None:
        yield link.unset(ends)
    yield from link.existing()


def _appointments(of: ResourceGuess) -> None:
    patient = of.fields.get("patientId")
    if "clientId" not in of.fields and patient is not None and isinstance(patient.sql, str):
        found = _owner_of(of, patient.sql)
        of.fields |= {"clientId": found} if found is not None else {}
    _start_and_end(of)
    status = of.fields.get("status")
    if status is not None and "displayStatus" not in of.fields:
        codes = {} if status.own else status.parameters.get("codes", {})
        said = {c: v and v.replace("_", " ").capitalize() for c, v in codes.items()}
        why = "the status in English; write it as your clients read it"
        score, why = (0.7, "the status's label") if status.own else (0.55, why)
        given = {"codes": said} if said else {}
        of.fields["displayStatus"] = replace(status, why=why, score=score, parameters=given)


def _owner_of(of: ResourceGuess, patient: str) -> Guess | None:
    """The owner of the animal: of its own row, or of who owns it."""
    animals = of.catalog.chosen.get("patients")
    if animals is None:
        return None
    source = animals.source.beside(of.source.alias)
    found = source.reference("clients")
    if found is None:
        return _owner(of.source, patient)
    sql = source.select(str(found.sql), f"{source.column(animals.key[0])} = {patient}")
    return replace(found, sql=sql, score=found.score - 0.1, why="the owner of the animal")


def _start_and_end(of: ResourceGuess) -> None:
    """A day and a time of day make one time; a start and minutes make an end."""
    start, source = of.fields.get("scheduledAt"), of.source
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
            of.fields["scheduledAt"] = start
    minutes = source.best("minutes", ("number", "clock"), least=0.7)
    if "endTime" not in of.fields and minutes is not None and start is not None:
        plus = {**start.parameters, "plus": source.column(minutes)}
        end = source.guess(minutes, 0.7, "the start and the minutes", plus, start.sql)
        of.fields["endTime"] = replace(end, others=start.others)


def _invoices(of: ResourceGuess) -> None:
    _list(of, "lines")
    payments = _list(of, "payments")
    total, paid = of.fields.get("total"), of.fields.get("amountPaid")
    if paid is None and payments is not None and "amount" in payments.fields:
        amount, link = payments.fields["amount"], payments.parent.sql if payments.parent else ""
        what = f"SUM({of.number(amount)})"
        sql = " ".join(("SELECT", what, "FROM", payments.from_, "WHERE", f"{link} = {of.key}"))
        paid = Guess(sql, 0.75, f"the sum of {amount.column}", amount.column)
        of.fields["amountPaid"] = paid
    if total is not None and paid is not None and "balance" not in of.fields:
        sql = f"{of.number(total)} - COALESCE({of.number(paid)}, 0)"
        why = "total less what was paid"
        of.fields["balance"] = Guess(sql, 0.7, why, "total-paid", total.parameters)


def _list(of: ResourceGuess, name: str) -> RowsGuess | None:
    """The table whose rows belong to a record, by its name and what it refers to."""
    found = of.child(name)
    if found is None:
        return None
    source, column, score = found
    key, start = source.table.key, f"{name}[]."
    shapes = {
        path[len(start) :]: each for path, each in of.shapes.items() if path.startswith(start)
    }
    taken = {column, *(key if len(key) == 1 else ())}
    rows = of.rows.lists[name] = rows_of(source, score)
    rows.parent = source.guess(column, score, "by its name")
    rows.fields = columns_of(source, f"invoices.{name}", shapes, taken)
    patient = source.reference("patients") if "patientId" in shapes else None
    rows.fields |= {"patientId": patient} if patient is not None else {}
    return rows


def _stock(of: ResourceGuess) -> None:
    for words in ("batches", "moves"):
        if found := of.child(words):
            _batches(of, *found[:2])
    if "supplier" not in of.fields:
        _supplier(of)
    quantity, least = of.fields.get("quantity"), of.fields.get("reorderThreshold")
    if quantity is None or least is None or "isLow" in of.fields:
        return
    low = f"CASE WHEN {of.number(quantity)} <= {of.number(least)} THEN 1 ELSE 0 END"
    score = min(quantity.score, least.score)
    of.fields["isLow"] = Guess(low, score, "quantity <= threshold", "quantity<=least")


def _batches(of: ResourceGuess, source: TableSource, column: str) -> None:
    """The quantity, the next date and the number, out of the rows of what is in stock."""
    found = columns_of(source, "stock", of.shapes, [column, *source.table.key])
    is_its = f"{source.column(column)} = {of.key}"
    by, later = source.column(column), [is_its]
    if expires := found.get("expiresAt"):
        by = str(expires.sql)
        later.append(source.unset(expires.name, is_set=True))
    for field in ("quantity", "expiresAt", "batchNumber"):
        guess = found.get(field)
        if guess is None or field in of.fields:
            continue
        sql = source.select(str(guess.sql), *later, first_by=by)
        if field == "quantity":
            sql = source.select(f"COALESCE(SUM({of.number(guess)}), 0)", is_its)
        score, why = min(guess.score, 0.8), f"from {source.table.name}"
        of.fields[field] = replace(guess, sql=sql, score=score, why=why)


def _supplier(of: ResourceGuess) -> None:
    """The name of the supplier, where the row only has its key."""
    party = of.catalog.chosen.get("clients")
    if party is None or party.kind is None:
        return
    source = party.source.beside(of.source.alias)
    names = [
        source.column(name)
        for part in ("company", "last_name")
        if (name := source.best(part, ("text",), least=0.7))
    ]
    for column in of.table.columns:
        words, is_key = names_key(column)
        if names and is_key and likeness(words, PHRASES["suppliers"]) >= 0.7:
            name = _or_company(*names) if len(set(names)) == 2 else names[0]
            is_its = f"{source.column(party.key[0])} = {of.source.column(column)}"
            sql = source.select(name, is_its)
            of.fields["supplier"] = of.source.guess(column, 0.7, "by its name", sql=sql)


SPECIAL: Mapping[str, Callable[[ResourceGuess], None]] = {
    "appointments": _appointments,
    "clients": _clients,
    "invoices": _invoices,
    "patients": _patients,
    "stock": _stock,
    "vets": _vets,
}
