"""The law of void rows: what is marked as deleted or inactive is not shown by oversight."""

from collections import Counter

from adapters.doctor.case import LawLook
from adapters.examination import Verdict, counted

# Names of such marks, in the languages in which practice systems are written most.
_MARKS = frozenset(
    (
        *("deleted", "removed", "archived", "hidden", "hide", "inactive", "active", "void"),
        *("voided", "annulled", "annule", "annullato", "cancellato", "eliminato", "attivo"),
        *("supprime", "efface", "archive", "actif", "inactif", "geloescht", "geloscht", "aktiv"),
        *("inaktiv", "archiviert", "borrado", "eliminado", "activo", "inactivo", "verwijderd"),
        *("actief", "inactief", "gearchiveerd", "vervallen", "enabled", "disabled", "retired"),
    )
)
# The spellings of yes and no; "" is none.
_YES = frozenset(("1", "-1", "true", "t", "y", "yes", "o", "oui", "j", "ja", "s", "si", "x"))
_NO = frozenset(("0", "false", "f", "n", "no", "non", "nein", "nee", ""))


def is_mark(name: str) -> bool:
    """Returns whether a column or member of that name says that rows are void, or are not."""
    letters = "".join(filter(str.isalpha, name.lower()))
    return letters in _MARKS or letters.removeprefix("is") in _MARKS


def is_flag(codes: Counter[str]) -> bool:
    """Returns whether some rows have yes, the others no, and none anything else."""
    yes, no = (any(code.lower() in known for code in codes) for known in (_YES, _NO))
    return yes and no and all(code.lower() in _YES | _NO for code in codes)


def mark_judged(part: LawLook, name: str, codes: Counter[str], *, at_key: bool = False) -> None:
    """Judges a mark at which nothing looks, by the rows that have each of its values."""
    if is_flag(codes):
        shown = ", ".join(f"{code or 'none'} ({many:,})" for code, many in codes.most_common())
        text = f"rows are taken whatever their {name} says: {shown}"
        part.breach(text, Verdict.WARNING, at_key=at_key)


def marks_told(part: LawLook, count: int) -> None:
    """Adds that no mark was found in so many sources, where none was."""
    if not part.look.findings:
        part.ok(f"no mark of void rows is left unread in {counted(count, 'source')}")
