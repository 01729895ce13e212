"""The parameters that several operations have: ids in the path, and filters of lists."""

from gateway.contract.fields import INSTANT, UUID
from gateway.contract.operation import Match, Param


def id_in_path(name: str, summary: str) -> Param:
    return Param(name=name, summary=summary, format=UUID, where="path", required=True)


def search_in(*fields: str) -> Param:
    return Param(
        name="search",
        summary=(
            f"Words that {' and '.join(fields)} must hold: each the beginning of a word,"
            " whatever the case and, where the practice system can, the accents."
        ),
        match=Match.SEARCH,
        fields=fields,
        shortest=2,
        longest=100,
    )


UPDATED_SINCE = Param(
    name="updatedSince",
    summary="Only records changed at this moment or later.",
    format=INSTANT,
    match=Match.SINCE,
    fields=("updatedAt",),
)
CATEGORY = Param(
    name="category",
    summary="Only items of this category.",
    match=Match.EQUALS,
    fields=("category",),
    shortest=1,
    longest=100,
)
