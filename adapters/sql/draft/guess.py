"""Guesses a whole mapping: each resource from its table, and what is beside it in others."""

from collections.abc import Mapping
from dataclasses import replace

from adapters.base import FieldShape, Shapes
from adapters.sql.draft.attributes import Attributes
from adapters.sql.draft.database import Column, Database, Table
from adapters.sql.draft.diary import guess_diary
from adapters.sql.draft.fields import columns_of
from adapters.sql.draft.guesses import Draft, Guess, RowsGuess
from adapters.sql.draft.likeness import likeness, tokens
from adapters.sql.draft.links import Links
from adapters.sql.draft.spelling import alias_for, first_of, literal, number, select, table_name
from adapters.sql.draft.tables import Catalog, Chosen, best_reference, choose
from adapters.sql.draft.vocabulary import (
    ADDRESS_PARTS,
    BATCHES,
    COMPANY,
    DAY,
    DEATH,
    FIRST_NAME,
    ID,
    LAST_NAME,
    LINES,
    MINUTES,
    MOVES,
    NAME_PREFIX,
    PAYMENTS,
    SUPPLIERS,
    TIME_OF_DAY,
    TITLE,
    WORDS,
)

# Fields whose codes are often explained in a table of their own.
LABELLED = ("species", "breed", "category", "unit", "location", "supplier", "status", "color")


def guess(database: Database, shapes: Shapes) -> Draft:
    """The draft of a mapping; a resource that no table was found for is None."""
    catalog = Catalog(database)
    chosen = choose(catalog)
    links = Links(catalog, chosen)
    resources: dict[str, RowsGuess | None] = {}
    for resource in shapes:
        if resource != "slots":
            found = chosen.get(resource)
            resources[resource] = (
                None if found is None else _Resource(links, resource, found, shapes).guessed()
            )
    draft = Draft(resources=resources)
    guess_diary(draft, links)
    return draft


class _Resource:
    """One resource's rows, filled step by step: the columns first, then what is elsewhere."""

    def __init__(self, links: Links, resource: str, found: Chosen, shapes: Shapes) -> None:
        self.links, self.catalog = links, links.catalog
        self.resource, self.found, self.table = resource, found, found.table
        self.shapes = shapes[resource]
        alias = alias_for(found.table.name, ())
        self.rows = RowsGuess(
            table=found.table.name,
            score=found.score,
            from_=f"{table_name(links.dialect, found.table)} {alias}",
            alias=alias,
            others=found.others,
            key=key_of(links, found.table, alias),
        )

    @property
    def fields(self) -> dict[str, Guess]:
        return self.rows.fields

    def guessed(self) -> RowsGuess:
        self._references()
        self._labels()
        own = {name: each for name, each in self.shapes.items() if "[]." not in name}
        taken = {each.column.partition(".")[2] for each in self.fields.values()}
        taken |= set(self.table.key) if len(self.table.key) == 1 else set()
        taken |= {self.found.kind} if self.found.kind else set()
        found = columns_of(self.catalog, self.table, self.rows.alias, self.resource, own, taken)
        self.rows.fields = {**found, **self.fields}
        self._key_as_text()
        self._elsewhere()
        special = getattr(self, f"_{self.resource}", None)
        if special is not None:
            special()
        self._never_changed()
        self._where()
        order = [*self.shapes]
        self.rows.fields = dict(sorted(self.fields.items(), key=lambda each: order.index(each[0])))
        return self.rows

    def _references(self) -> None:
        wanted = [
            (field, shape.refers)
            for field, shape in self.shapes.items()
            if shape.refers and "[]." not in field
        ]
        self.fields.update(self.links.references(self.table, self.rows.alias, wanted))

    def _key_as_text(self) -> None:
        """A key that people read: an article's number."""
        key = self.table.key
        if len(key) != 1 or self.table.column(key[0]).kind != "text":
            return
        for field in ("reference", "number"):
            wanted = WORDS[self.resource].get(field, ())
            if field not in self.fields and self.catalog.alike(self.table, key[0], wanted) >= 0.6:
                self.fields[field] = Guess(
                    sql=self._column(key[0]),
                    score=0.7,
                    why="the key",
                    column=f"{self.table.name}.{key[0]}",
                )

    def _labels(self) -> None:
        for field in LABELLED:
            shape = self.shapes.get(field)
            if shape is not None:
                place = f"{self.resource}.{field}"
                found = self.links.label(self.table, self.rows, field, place, shape)
                if found is not None:
                    self.fields[field] = found

    def _elsewhere(self) -> None:
        """What one row each of a table of attributes holds."""
        found = Attributes(self.links, self.resource, self.shapes).found(self.table, self.rows)
        for field, each in found:
            if field not in self.fields or self.fields[field].score < each.score - 0.1:
                self.fields[field] = each

    def _never_changed(self) -> None:
        """A record without a change is as old as its creation: else `updatedSince` misses it."""
        changed, made = self.fields.get("updatedAt"), self.fields.get("createdAt")
        if changed is None or made is None or changed.parameters != made.parameters:
            return
        look = self.catalog.look(self.table, changed.column.partition(".")[2])
        given = str(changed.sql)
        for zero in look.zeros if look.is_text else ():
            given = f"NULLIF({given}, {literal(zero)})"
        if look.blank or look.zeros:
            self.fields["updatedAt"] = replace(changed, sql=f"COALESCE({given}, {made.sql})")

    def _where(self) -> None:
        used = {each.column.partition(".")[2] for each in self.fields.values()}
        if self.found.kind is not None:
            self._kind(self.found.kind)
        self.rows.where += self.links.existing(self.table, self.rows.alias, used)

    def _kind(self, kind: str) -> None:
        look = self.catalog.look(self.table, kind)
        codes = [self.links.code(look, e, self.table.column(kind).kind) for e in self.found.codes]
        said = f"= {codes[0]}" if len(codes) == 1 else f"IN ({', '.join(codes)})"
        seen = f"{kind} has {', '.join(self.found.kinds)}"
        self.rows.where.append((f"{self.rows.alias}.{self.links.q(kind)} {said}", seen))

    def _column(self, name: str) -> str:
        return f"{self.rows.alias}.{self.links.q(name)}"

    def _clients(self) -> None:
        self._one_name()
        self._prefixed()
        self._company()
        self._address()

    def _one_name(self) -> None:
        """A column such as `Last,First`, where there is none for the first name."""
        last = self.fields.get("lastName")
        if last is None or "firstName" in self.fields or ":" in last.column:
            return
        values = [str(e) for e in self.table.values(last.column.partition(".")[2]) if e]
        if values and sum("," in each for each in values) > 0.6 * len(values):
            given = {"as": "part of text", "separator": ","}
            self.fields["lastName"] = replace(last, parameters={**given, "part": 1})
            self.fields["firstName"] = replace(
                last, parameters={**given, "part": 2}, score=0.7, why="the part behind the comma"
            )

    def _prefixed(self) -> None:
        """A column such as `tussenvoegsel`, whose `van der` belongs before the last name."""
        last = self.fields.get("lastName")
        prefix = self.catalog.best(self.table, NAME_PREFIX, ("text",), least=0.8)
        if last is not None and prefix is not None and not last.parameters:
            sql = (self._column(prefix), str(last.sql))
            given = {"as": "joined text", "separator": " "}
            self.fields["lastName"] = replace(last, sql=sql, parameters=given)

    def _company(self) -> None:
        last = self.fields.get("lastName")
        company = self.catalog.best(self.table, COMPANY, ("text",), least=0.7)
        if last is None or company is None or last.column.endswith(f".{company}"):
            return
        if not last.parameters:
            sql = f"COALESCE(NULLIF(TRIM({last.sql}), ''), {self._column(company)})"
            self.fields["lastName"] = replace(last, sql=sql)

    def _address(self) -> None:
        address = self.fields.get("address")
        if address is None or ":" in address.column:
            return
        first, *others = ADDRESS_PARTS
        used = {each.column.partition(".")[2] for n, each in self.fields.items() if n != "address"}
        used |= {each.name for each in self.table.columns if set(tokens(each.name)) & ID}
        used |= {*self.table.key, self.found.kind or ""}
        parts = [
            each.name
            for wanted in (first, *others)
            for each in self.table.columns
            if self.catalog.alike(self.table, each.name, wanted) >= 0.8 and each.name not in used
        ]
        parts = list(dict.fromkeys(parts))
        if len(parts) > 1:
            sql = tuple(map(self._column, parts))
            given = {"as": "joined text", "separator": ", "}
            self.fields["address"] = replace(address, sql=sql, parameters=given)

    def _vets(self) -> None:
        parts = [
            self.catalog.best(self.table, wanted, ("text",), least=least)
            for wanted, least in (
                (TITLE, 0.8),
                (FIRST_NAME, 0.7),
                (NAME_PREFIX, 0.8),
                (LAST_NAME, 0.7),
            )
        ]
        names = list(dict.fromkeys(each for each in parts if each))
        _, first, _, last = parts
        if first is None or last is None or first == last:
            return
        self.fields["name"] = Guess(
            sql=tuple(map(self._column, names)),
            score=0.85,
            why="first and last name",
            column=f"{self.table.name}.{last}",
            parameters={"as": "joined text", "separator": " "},
        )

    def _patients(self) -> None:
        if "clientId" not in self.fields and isinstance(self.rows.key, Guess):
            owner = self.links.owner(self.table, self.rows.alias, self._column(self.found.key[0]))
            if owner is not None:
                self.fields["clientId"] = owner
        died = self.catalog.best(self.table, DEATH, ("moment", "day", "flag"), least=0.7)
        if died is None:
            return
        status, dead = self.fields.get("status"), self._dead(died)
        codes = dict(status.parameters.get("codes", {})) if status else {"A": "ACTIVE"}
        if "DECEASED" in codes.values():
            return
        alive = f"ELSE {status.sql}" if status else "ELSE 'A'"
        name = status.column.partition(".")[2] if status else died
        look = self.catalog.look(self.table, name) if status and not status.own else None
        if look is not None and look.kind == "flag" and status is not None:
            said = self.links.flag(look.yes[0], self.table.column(name).kind)
            alive = f"WHEN {status.sql} = {said} THEN 'A' ELSE 'I'"
            codes = {"A": "ACTIVE", "I": "INACTIVE"}
        self.fields["status"] = Guess(
            sql=f"CASE WHEN {dead} THEN 'D' {alive} END",
            score=0.7,
            why=f"with {died}",
            column=status.column if status else f"{self.table.name}.{died}",
            parameters={"codes": {**codes, "D": "DECEASED"}},
        )

    def _dead(self, column: str) -> str:
        look = self.catalog.look(self.table, column)
        if look.kind == "flag":
            said = self.links.flag(look.yes[0], self.table.column(column).kind)
            return f"{self._column(column)} = {said}"
        return self.links.unset(self.rows.alias, self.table, column, is_set=True)

    def _appointments(self) -> None:
        patient = self.fields.get("patientId")
        if "clientId" not in self.fields and patient is not None and isinstance(patient.sql, str):
            found = self._owner_of(patient.sql)
            if found is not None:
                self.fields["clientId"] = found
        self._two_columns()
        self._end()
        status = self.fields.get("status")
        if status is not None and "displayStatus" not in self.fields:
            codes = {} if status.own else status.parameters.get("codes", {})
            said = {c: v and v.replace("_", " ").capitalize() for c, v in codes.items()}
            why = "the status in English; write it as your clients read it"
            given = {"codes": said} if said else {}
            score, why = (0.7, "the status's label") if status.own else (0.55, why)
            self.fields["displayStatus"] = replace(status, why=why, score=score, parameters=given)

    def _owner_of(self, patient: str) -> Guess | None:
        """The owner of the animal: of its own row, or of who owns it."""
        animals = self.links.chosen.get("patients")
        if animals is None:
            return None
        alias = alias_for(animals.table.name, [self.rows.alias])
        owner = self.links.reference(animals.table, alias, "clients")
        if owner is None:
            return self.links.owner(self.table, self.rows.alias, patient)
        name = table_name(self.links.dialect, animals.table)
        key = f"{alias}.{self.links.q(animals.key[0])}"
        sql = select(str(owner.sql), f"{name} {alias}", f"{key} = {patient}")
        return replace(owner, sql=sql, score=owner.score - 0.1, why="the owner of the animal")

    def _two_columns(self) -> None:
        """A day and a time of day that make one time."""
        start = self.fields.get("scheduledAt")
        if (
            start is not None
            and self.catalog.look(self.table, start.column.partition(".")[2]).has_time
        ):
            return
        day = self.catalog.best(self.table, DAY, ("day", "moment"), least=0.5)
        clock = self.catalog.best(self.table, TIME_OF_DAY, ("clock",), least=0.5)
        if day is not None and clock is not None:
            self.fields["scheduledAt"] = Guess(
                sql=(self._column(day), self._column(clock)),
                score=0.75,
                why="a day and a time of day",
                column=f"{self.table.name}.{day}",
                parameters={"as": "local time", **self._patterns(day, clock)},
            )

    def _patterns(self, day: str, clock: str) -> dict[str, str]:
        """How the two are written, where they don't read by themselves."""
        pattern = self.catalog.look(self.table, day).pattern
        if pattern in (None, "%Y-%m-%d"):
            return {}
        has_seconds = self.catalog.look(self.table, clock).longest > len("00:00")
        return {"pattern": f"{pattern} {'%H:%M:%S' if has_seconds else '%H:%M'}"}

    def _end(self) -> None:
        minutes = self.catalog.best(self.table, MINUTES, ("number", "clock"), least=0.7)
        start = self.fields.get("scheduledAt")
        if "endTime" in self.fields or minutes is None or start is None:
            return
        self.fields["endTime"] = replace(
            start,
            score=0.7,
            why="the start and the minutes",
            column=f"{self.table.name}.{minutes}",
            parameters={**start.parameters, "plus": self._column(minutes)},
        )

    def _invoices(self) -> None:
        self._list("lines", LINES, "invoices.lines")
        payments = self._list("payments", PAYMENTS, "invoices.payments")
        total, paid = self.fields.get("total"), self.fields.get("amountPaid")
        if paid is None and payments is not None and "amount" in payments.fields:
            paid = self._sum(payments, "amount")
        if paid is not None:
            self.fields["amountPaid"] = paid
        if total is not None and paid is not None and "balance" not in self.fields:
            sql = f"{self._number(total)} - COALESCE({_in_brackets(self._number(paid))}, 0)"
            self.fields["balance"] = replace(
                total,
                sql=sql,
                score=0.7,
                why="total less what was paid",
                column="total-paid",
                others=(),
            )

    def _number(self, each: Guess) -> str:
        name, _, column = each.column.partition(".")
        table = self.catalog.table(name)
        sql = str(each.sql)
        is_text = table is not None and self.catalog.look(table, column).is_text
        return number(sql, is_text=is_text and not sql.startswith("SELECT"))

    def _sum(self, rows: RowsGuess, field: str) -> Guess:
        amount, parent = rows.fields[field], rows.parent
        key = self._column(self.found.key[0])
        link = parent.sql if parent else ""
        sql = select(f"SUM({self._number(amount)})", rows.from_, f"{link} = {key}")
        return replace(
            amount, sql=sql, score=0.75, why=f"the sum of {amount.column}", others=(), parameters={}
        )

    def _list(self, name: str, words: tuple[tuple[str, ...], ...], place: str) -> RowsGuess | None:
        """The table whose rows belong to a record, by its name and what it refers to."""
        found = self._child(words)
        if found is None:
            return None
        table, column, score = found
        alias = alias_for(table.name, [self.rows.alias])
        shapes: dict[str, FieldShape] = {
            each.partition("[].")[2]: shape
            for each, shape in self.shapes.items()
            if each.startswith(f"{name}[].")
        }
        taken = {column, *(table.key if len(table.key) == 1 else ())}
        rows = RowsGuess(
            table=table.name,
            score=score,
            from_=f"{table_name(self.links.dialect, table)} {alias}",
            alias=alias,
            key=key_of(self.links, table, alias),
            parent=Guess(
                sql=f"{alias}.{self.links.q(column)}",
                score=score,
                why="by its name",
                column=f"{table.name}.{column}",
            ),
            fields=columns_of(self.catalog, table, alias, place, shapes, taken),
        )
        if "patientId" in shapes:
            patient = self.links.reference(table, alias, "patients")
            if patient is not None:
                rows.fields["patientId"] = patient
        self.rows.lists[name] = rows
        return rows

    def _child(self, words: tuple[tuple[str, ...], ...]) -> tuple[Table, str, float] | None:
        own = {each.table.name for each in self.links.chosen.values()}
        found = []
        for each in self.catalog.tables:
            link = best_reference(self.catalog, each, self.resource, self.links.chosen)
            alike = likeness(self.catalog.called(each), words)
            if each.name not in own and link is not None and alike >= 0.5:
                found.append((0.5 * alike + 0.5 * link[0], each.name, link[1]))
        if not found:
            return None
        score, name, column = max(found)
        table = self.catalog.table(name)
        return None if table is None else (table, column, score)

    def _stock(self) -> None:
        for words in (BATCHES, MOVES):
            found = self._child(words)
            if found is not None:
                self._batches(*found)
        self._supplier()
        quantity, least = self.fields.get("quantity"), self.fields.get("reorderThreshold")
        if quantity is not None and least is not None and "isLow" not in self.fields:
            one, other = _in_brackets(self._number(quantity)), self._threshold(least)
            sql = f"CASE WHEN {one} <= {other} THEN 1 ELSE 0 END"
            score = min(quantity.score, least.score)
            self.fields["isLow"] = replace(
                quantity,
                sql=sql,
                score=score,
                why="quantity <= threshold",
                column="quantity<=least",
                others=(),
                parameters={},
            )

    def _threshold(self, least: Guess) -> str:
        is_text = least.column.partition(":")[2] != ""
        sql = _in_brackets(str(least.sql))
        return number(sql, is_text=True) if is_text else self._number(least)

    def _batches(self, table: Table, column: str, score: float) -> None:
        """The quantity, the next date and the number, out of the rows of what is in stock."""
        alias = alias_for(table.name, [self.rows.alias])
        shapes = {name: self.shapes[name] for name in ("quantity", "expiresAt", "batchNumber")}
        found = columns_of(
            self.catalog, table, alias, "stock", {**self.shapes}, [column, *table.key]
        )
        rest = (
            f"FROM {table_name(self.links.dialect, table)} {alias}"
            f" WHERE {alias}.{self.links.q(column)} = {self._column(self.found.key[0])}"
        )
        expires = found.get("expiresAt")
        by = str(expires.sql) if expires else f"{alias}.{self.links.q(column)}"
        name = expires.column.partition(".")[2] if expires else ""
        later = (
            f"{rest} AND {self.links.unset(alias, table, name, is_set=True)}" if expires else rest
        )
        for field in shapes:
            each = found.get(field)
            if each is None or field in self.fields:
                continue
            if field == "quantity":
                sql = f"SELECT COALESCE(SUM({self._number(each)}), 0) {rest}"
            else:
                sql = first_of(self.links.dialect, str(each.sql), later, by)
            why = f"from {table.name}"
            self.fields[field] = replace(each, sql=sql, score=min(each.score, 0.8), why=why)

    def _supplier(self) -> None:
        """The name of the supplier, where the row only has its key."""
        party = self.links.chosen.get("clients")
        if "supplier" in self.fields or party is None or party.kind is None:
            return
        for column in self.table.columns:
            words = [each for each in tokens(column.name) if each not in ID]
            if len(words) == len(tokens(column.name)) or likeness(words, SUPPLIERS) < 0.7:
                continue
            alias = alias_for(party.table.name, [self.rows.alias])
            name = self._name_of(party.table, alias)
            if name is None:
                continue
            where = f"{alias}.{self.links.q(party.key[0])} = {self._column(column.name)}"
            sql = select(name, f"{table_name(self.links.dialect, party.table)} {alias}", where)
            self.fields["supplier"] = Guess(
                sql=sql, score=0.7, why="by its name", column=f"{self.table.name}.{column.name}"
            )

    def _name_of(self, table: Table, alias: str) -> str | None:
        last = self.catalog.best(table, LAST_NAME, ("text",), least=0.7)
        company = self.catalog.best(table, COMPANY, ("text",), least=0.7)
        names = [f"{alias}.{self.links.q(each)}" for each in (company, last) if each]
        if len(set(names)) == 2:
            return f"COALESCE(NULLIF(TRIM({names[0]}), ''), {names[1]})"
        return names[0] if names else None


def _in_brackets(sql: str) -> str:
    return f"({sql})" if sql.startswith("SELECT") else sql


def key_of(links: Links, table: Table, alias: str) -> Guess:
    """The key of a table's rows: several columns as a list, a UUID as it is, long texts hashed."""
    names = table.key or next(iter(table.unique), ()) or (table.columns[0].name,)
    why = "primary key" if table.key else "no primary key was found; it must be unique"
    sql = tuple(f"{alias}.{links.q(each)}" for each in names)
    column = f"{table.name}.{names[0]}"
    score = 0.95 if table.key else 0.45
    if len(sql) > 1:
        return Guess(sql=sql, score=score, why=why, column=column)
    look, kind = links.catalog.look(table, names[0]), table.column(names[0])
    given = {}
    if look.kind == "uuid":
        is_unique = bool(table.key) or tuple(names) in table.unique
        given = {"as": "native id"} if is_unique else {"as": "hashed id"}
    elif kind.kind == "text" and (look.longest > 8 or _wide(kind)):
        given = {"as": "hashed id"}
    return Guess(sql=sql[0], score=score, why=why, column=column, parameters=given)


def _wide(column: Column) -> bool:
    return column.length is not None and column.length > 8


def unmapped(rows: RowsGuess, shapes: Mapping[str, FieldShape]) -> list[str]:
    """The fields that nothing was found for."""
    return [
        each for each in shapes if each not in rows.fields and each != "id" and "[]." not in each
    ]
