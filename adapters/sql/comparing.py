"""Conditions on ids, texts, codes and truths as SQL.

Each lets through every row whose shown value is as the condition says, and as few others as can
be: those are left out later, and may cost a page another statement.
"""

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, and_, false, not_, or_

from adapters.base import Condition
from adapters.ids import Id
from adapters.mapping.narrowing import meets
from adapters.sql.columns import Columns
from adapters.sql.engines.base import Speech, given
from adapters.sql.keyed import only_texts
from adapters.values.convert import Boolean, Codes, Email, Text


def filled(column: Columns, speech: Speech) -> ColumnElement[bool]:
    """Whether there is a value that is more than blanks."""
    expression = column.parts[0]
    return and_(expression.is_not(None), speech.trimmed(expression) != given(None, ""))


def by_id(column: Columns, ids: Id, condition: Condition, speech: Speech) -> ColumnElement[bool]:
    raws = [raw for each in condition.value for raw in ids.encode(each)]
    if condition.test == "in":
        # as the keys are, so that an index serves
        return column.among(raws if speech.loose_types else only_texts(raws))
    texts = list(dict.fromkeys(map(str, raws)))
    return and_(filled(column, speech), not_(_exactly(column, texts, speech)))


def by_text(
    column: Columns, text: Text | Email, condition: Condition, speech: Speech
) -> ColumnElement[bool]:
    raws = [raw for each in condition.value for raw in text.encode(each)]
    among = _exactly(column, raws, speech)
    return among if condition.test == "in" else and_(filled(column, speech), not_(among))


def by_code(
    column: Columns, codes: Codes, condition: Condition, speech: Speech
) -> ColumnElement[bool]:
    """The codes of all that it lets be: an unknown one is none of them."""
    wanted = [code for code, value in codes.table.items() if meets(value, condition)]
    among = _exactly(column, [*wanted, *_bits(wanted, speech)], speech)
    return or_(among, column.blank) if "" in wanted else among


def by_truth(
    column: Columns, boolean: Boolean, condition: Condition, speech: Speech
) -> ColumnElement[bool]:
    truths = [each for each in (True, False) if meets(each, condition)]
    wanted = [raw for each in truths for raw in boolean.encode(each)]
    texts = [raw for raw in wanted if isinstance(raw, str)]
    others = [column.parts[0] == given(None, raw) for raw in wanted if not isinstance(raw, str)]
    return or_(_exactly(column, texts, speech), *others)


def _exactly(column: Columns, texts: Sequence[str], speech: Speech) -> ColumnElement[bool]:
    """Whether it is one of these texts by every letter, whatever the column's collation.

    A blank that is none to the database, such as one that does not break, is a letter here.
    """
    if not texts:
        return false()
    spelt = speech.exact(speech.trimmed(column.parts[0]))
    return or_(*(spelt == given(None, each) for each in texts))


def _bits(codes: Sequence[str], speech: Speech) -> Iterator[str]:
    """The numbers in a BIT column, as they become texts."""
    for each in codes:
        if speech.bits_are_letters and each.isdecimal() and int(each) < ord(" "):
            yield chr(int(each))
