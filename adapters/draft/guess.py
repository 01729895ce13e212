"""Guesses a whole mapping: each resource from its table, and what is beside it in others."""

from collections.abc import Callable, Mapping

from adapters.base import FieldShape, Shapes
from adapters.draft.billing import invoices
from adapters.draft.database import Database
from adapters.draft.diary import guess_diary
from adapters.draft.guesses import Draft, RowsGuess
from adapters.draft.links import Links
from adapters.draft.people import clients, patients, vets
from adapters.draft.resource import ResourceGuess
from adapters.draft.stock import stock
from adapters.draft.tables import Catalog, choose
from adapters.draft.visits import appointments

# What is known of one resource alone.
SPECIAL: Mapping[str, Callable[[ResourceGuess], None]] = {
    "appointments": appointments,
    "clients": clients,
    "invoices": invoices,
    "patients": patients,
    "stock": stock,
    "vets": vets,
}


def guess(database: Database, shapes: Shapes) -> Draft:
    """The draft of a mapping; a resource that no table was found for is None."""
    catalog = Catalog(database)
    chosen = choose(catalog)
    links = Links(catalog, chosen)
    resources: dict[str, RowsGuess | None] = {}
    for resource in shapes:
        if resource != "slots":
            found = chosen.get(resource)
            if found is None:
                resources[resource] = None
                continue
            made = ResourceGuess(links, resource, found, shapes)
            resources[resource] = made.guessed(SPECIAL.get(resource))
    draft = Draft(resources=resources)
    guess_diary(draft, links)
    return draft


def unmapped(rows: RowsGuess, shapes: Mapping[str, FieldShape]) -> list[str]:
    """The fields that nothing was found for."""
    return [
        each for each in shapes if each not in rows.fields and each != "id" and "[]." not in each
    ]
