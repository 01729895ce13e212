"""What is known of one resource alone: names and addresses, deaths, ends, sums and batches."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from adapters.draft.document import Guess, RowsGuess
from adapters.draft.links import flag, owner, reference, unset
from adapters.draft.resource import ResourceGuess, columns_of, in_brackets, key_of, number_in
from adapters.draft.tables import TableSource, names_key
from adapters.draft.vocabulary import PHRASES, likeness


def _clients(of: ResourceGuess) -> None:
    last = of.fields.get("lastName")
    if last is not None:
        _names(of, last)
    _address(of)


def _names(of: ResourceGuess, last: Guess) -> None:
    """One column such as `Last,First`; companies; a prefix such as `van der` in its own column."""
    values = [str(v) for v in of.table.values(last.name) if v] if ":" not in last.column else []
    if "firstName" not in of.fields and sum("," in v for v in values) > 0.6 * len(values):
        given = {"as": "part of text", "separator": ","}
        why = "the part behind the comma"
        first = replace(last, parameters={**given, "part": 2}, score=0.7, why=why)
        of.fields["firstName"] = first
        last = replace(last, parameters={**given, "part": 1})
    company = of.catalog.best(of.table, PHRASES["company"], ("text",), least=0.7)
    if company not in (None, last.name) and not last.parameters:
        sql = _or_company(str(last.sql), of.source.column(str(company)))
        last = replace(last, sql=sql)
    prefix = of.catalog.best(of.table, PHRASES["name_prefix"], ("text",), least=0.8)
    if prefix is not None and not last.parameters:
        given = {"as": "joined text", "separator": " "}
        sql_of_both = (of.source.column(prefix), str(last.sql))
        last = replace(last, sql=sql_of_both, parameters=given)
    of.fields["lastName"] = last


def _or_company(name: str, company: str) -> str:
    return f"COALESCE(NULLIF(TRIM({name}), ''), {company})"


def _address(of: ResourceGuess) -> None:
    address = of.fields.get("address")
    if address is None or ":" in address.column:
        return
    used = {guess.name for name, guess in of.fields.items() if name != "address"}
    used |= {column.name for column in of.table.columns if names_key(column.name)[1]}
    used |= {*of.table.key, of.chosen.kind or ""}
    parts = dict.fromkeys(
        column.name
        for part in ("street", "postcode", "town")
        for column in of.table.columns
        if of.catalog.alike(of.table, column.name, PHRASES[part]) >= 0.8 and column.name not in used
    )
    if len(parts) > 1:
        given = {"as": "joined text", "separator": ", "}
        sql = tuple(map(of.source.column, parts))
        of.fields["address"] = replace(address, sql=sql, parameters=given)


def _vets(of: ResourceGuess) -> None:
    wanted = {"title": 0.8, "first_name": 0.7, "name_prefix": 0.8, "last_name": 0.7}
    parts = {
        part: of.catalog.best(of.table, PHRASES[part], ("text",), least=least)
        for part, least in wanted.items()
    }
    first, last = parts["first_name"], parts["last_name"]
    if first is None or last is None or first == last:
        return
    names = dict.fromkeys(part for part in parts.values() if part)
    of.fields["name"] = Guess(
        sql=tuple(map(of.source.column, names)),
        score=0.85,
        why="first and last name",
        column=f"{of.table.name}.{last}",
        parameters={"as": "joined text", "separator": " "},
    )


def _patients(of: ResourceGuess) -> None:
    if "clientId" not in of.fields and (found := owner(of.catalog, of.source, of.key)):
        of.fields["clientId"] = found
    died = of.catalog.best(of.table, PHRASES["death"], ("moment", "day", "flag"), least=0.7)
    status = of.fields.get("status")
    codes = dict(status.parameters.get("codes", {})) if status else {"A": "ACTIVE"}
    if died is None or "DECEASED" in codes.values():
        return
    alive = f"ELSE {status.sql}" if status else "ELSE 'A'"
    is_own = status is not None and not status.own and status.table == of.table.name
    if status and is_own and of.catalog.profile(of.table, status.name).kind == "flag":
        yes = flag(of.catalog, of.source, status.name)
        alive = f"WHEN {status.sql} = {yes} THEN 'A' ELSE 'I'"
        codes = {"A": "ACTIVE", "I": "INACTIVE"}
    of.fields["status"] = Guess(
        sql=f"CASE WHEN {_is_dead(of, died)} THEN 'D' {alive} END",
        score=0.7,
        why=f"with {died}",
        column=status.column if status else f"{of.table.name}.{died}",
        parameters={"codes": {**codes, "D": "DECEASED"}},
    )


def _is_dead(of: ResourceGuess, column: str) -> str:
    if of.catalog.profile(of.table, column).kind == "flag":
        return f"{of.source.column(column)} = {flag(of.catalog, of.source, column)}"
    return unset(of.catalog, of.source, column, is_set=True)


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
    source = of.catalog.source(animals.table, of.source.alias)
    found = reference(of.catalog, source, "clients")
    if found is None:
        return owner(of.catalog, of.source, patient)
    sql = source.select(str(found.sql), f"{source.column(animals.key[0])} = {patient}")
    return replace(found, sql=sql, score=found.score - 0.1, why="the owner of the animal")


def _start_and_end(of: ResourceGuess) -> None:
    """A day and a time of day make one time; a start and minutes make an end."""
    start, table = of.fields.get("scheduledAt"), of.table
    if start is None or not of.catalog.profile(table, start.name).has_time:
        day = of.catalog.best(table, PHRASES["day"], ("day", "moment"), least=0.5)
        clock = of.catalog.best(table, PHRASES["time_of_day"], ("clock",), least=0.5)
        if day is not None and clock is not None:
            of.fields["scheduledAt"] = start = Guess(
                sql=(of.source.column(day), of.source.column(clock)),
                score=0.75,
                why="a day and a time of day",
                column=f"{table.name}.{day}",
                parameters={"as": "local time", **_patterns(of, day, clock)},
            )
    minutes = of.catalog.best(table, PHRASES["minutes"], ("number", "clock"), least=0.7)
    if "endTime" not in of.fields and minutes is not None and start is not None:
        given = {**start.parameters, "plus": of.source.column(minutes)}
        column = f"{table.name}.{minutes}"
        end = replace(start, score=0.7, why="the start and the minutes", column=column)
        of.fields["endTime"] = replace(end, parameters=given)


def _patterns(of: ResourceGuess, day: str, clock: str) -> dict[str, str]:
    """How the two are written, where they don't read by themselves."""
    pattern = of.catalog.profile(of.table, day).pattern
    if pattern in (None, "%Y-%m-%d"):
        return {}
    has_seconds = of.catalog.profile(of.table, clock).longest > len("00:00")
    return {"pattern": f"{pattern} {'%H:%M:%S' if has_seconds else '%H:%M'}"}


def _invoices(of: ResourceGuess) -> None:
    _list(of, "lines")
    payments = _list(of, "payments")
    total, paid = of.fields.get("total"), of.fields.get("amountPaid")
    if paid is None and payments is not None and "amount" in payments.fields:
        of.fields["amountPaid"] = paid = _sum(of, payments)
    if total is not None and paid is not None and "balance" not in of.fields:
        sql = f"{of.number(total)} - COALESCE({of.number(paid)}, 0)"
        balance = replace(total, sql=sql, score=0.7, column="total-paid", others=())
        of.fields["balance"] = replace(balance, why="total less what was paid")


def _sum(of: ResourceGuess, payments: RowsGuess) -> Guess:
    amount, link = payments.fields["amount"], payments.parent.sql if payments.parent else ""
    what = f"SUM({of.number(amount)})"
    sql = " ".join(("SELECT", what, "FROM", payments.from_, "WHERE", f"{link} = {of.key}"))
    why = f"the sum of {amount.column}"
    return replace(amount, sql=sql, score=0.75, why=why, others=(), parameters={})


def _list(of: ResourceGuess, name: str) -> RowsGuess | None:
    """The table whose rows belong to a record, by its name and what it refers to."""
    found = of.child(PHRASES[name])
    if found is None:
        return None
    source, column, score = found
    table = source.table
    parts = {path.partition("[].")[::2]: shape for path, shape in of.shapes.items()}
    shapes = {field: shape for (owner, field), shape in parts.items() if owner == name and field}
    taken = {column, *(table.key if len(table.key) == 1 else ())}
    place = f"{table.name}.{column}"
    rows = of.rows.lists[name] = RowsGuess(
        table=table.name,
        score=score,
        from_=str(source),
        key=key_of(of.catalog, source),
        parent=Guess(sql=source.column(column), score=score, why="by its name", column=place),
        fields=columns_of(of.catalog, source, f"invoices.{name}", shapes, taken),
    )
    patient = reference(of.catalog, source, "patients") if "patientId" in shapes else None
    rows.fields |= {"patientId": patient} if patient is not None else {}
    return rows


def _stock(of: ResourceGuess) -> None:
    for words in ("batches", "moves"):
        found = of.child(PHRASES[words])
        if found is not None:
            _batches(of, *found[:2])
    if "supplier" not in of.fields:
        _supplier(of)
    quantity, least = of.fields.get("quantity"), of.fields.get("reorderThreshold")
    if quantity is None or least is None or "isLow" in of.fields:
        return
    sql = in_brackets(str(least.sql))
    threshold = number_in(sql) if ":" in least.column else of.number(least)
    low = f"CASE WHEN {of.number(quantity)} <= {threshold} THEN 1 ELSE 0 END"
    score, column = min(quantity.score, least.score), "quantity<=least"
    of.fields["isLow"] = Guess(sql=low, score=score, why="quantity <= threshold", column=column)


def _batches(of: ResourceGuess, source: TableSource, column: str) -> None:
    """The quantity, the next date and the number, out of the rows of what is in stock."""
    table = source.table
    found = columns_of(of.catalog, source, "stock", of.shapes, [column, *table.key])
    is_its = f"{source.column(column)} = {of.key}"
    by, later = source.column(column), [is_its]
    if expires := found.get("expiresAt"):
        by = str(expires.sql)
        later.append(unset(of.catalog, source, expires.name, is_set=True))
    for field in ("quantity", "expiresAt", "batchNumber"):
        guess = found.get(field)
        if guess is None or field in of.fields:
            continue
        sql = source.select_first(str(guess.sql), by, *later)
        if field == "quantity":
            sql = source.select(f"COALESCE(SUM({of.number(guess)}), 0)", is_its)
        score, why = min(guess.score, 0.8), f"from {table.name}"
        of.fields[field] = replace(guess, sql=sql, score=score, why=why)


def _supplier(of: ResourceGuess) -> None:
    """The name of the supplier, where the row only has its key."""
    party = of.catalog.chosen.get("clients")
    if party is None or party.kind is None:
        return
    source = of.catalog.source(party.table, of.source.alias)
    names = [
        source.column(name)
        for part in ("company", "last_name")
        if (name := of.catalog.best(party.table, PHRASES[part], ("text",), least=0.7))
    ]
    for column in of.table.columns:
        words, is_key = names_key(column.name)
        if names and is_key and likeness(words, PHRASES["suppliers"]) >= 0.7:
            name = _or_company(*names) if len(set(names)) == 2 else names[0]
            is_its = f"{source.column(party.key[0])} = {of.source.column(column.name)}"
            of.fields["supplier"] = Guess(
                sql=source.select(name, is_its),
                score=0.7,
                why="by its name",
                column=f"{of.table.name}.{column.name}",
            )


SPECIAL: Mapping[str, Callable[[ResourceGuess], None]] = {
    "appointments": _appointments,
    "clients": _clients,
    "invoices": _invoices,
    "patients": _patients,
    "stock": _stock,
    "vets": _vets,
}
