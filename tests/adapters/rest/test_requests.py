"""The targets of requests: quoted as a browser would, whatever an id or a parameter holds."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from adapters.base import BackendNonsense, NotFound
from adapters.rest.requests import Endpoint, TemplateValues, quoted

TEXTS = st.one_of(
    st.text(), st.text(st.characters(max_codepoint=127)), st.from_regex(r"[a-z0-9:+.-]*")
)


def endpoint(path: str | None, names: list[str], values: list[str]) -> Endpoint:
    query = [
        (name, lambda _, value=value: value) for name, value in zip(names, values, strict=True)
    ]
    return Endpoint(
        method="GET",
        label="",
        parts=["things", lambda _: path],
        query=query,  # type: ignore[arg-type]
        body=None,
    )


@given(TEXTS.filter(lambda text: text not in ("", ".", "..")), st.lists(st.tuples(TEXTS, TEXTS)))
def test_a_target_is_quoted_as_the_libraries_quote_it(
    part: str, pairs: list[tuple[str, str]]
) -> None:
    names, values = [name for name, _ in pairs], [value for _, value in pairs]
    try:
        expected = f"/things/{quote(part, safe='')}"
        if pairs:
            expected += f"?{URL.build(query=pairs).raw_query_string}"
    except ValueError:  # a surrogate alone is no text that can be sent
        with pytest.raises(ValueError, match="surrogates"):
            endpoint(part, names, values).request(TemplateValues())
    else:
        made = endpoint(part, names, values).request(TemplateValues())
        assert made.target == expected


def test_every_letter_is_quoted_as_the_libraries_quote_it() -> None:
    for letter in map(chr, range(0x300)):
        made = endpoint("x", [letter], [letter]).request(TemplateValues()).target
        assert made == f"/things/x?{URL.build(query=[(letter, letter)]).raw_query_string}"
        assert quoted(letter) == quote(letter, safe="")


@pytest.mark.parametrize("path", [".", ".."])
def test_no_id_leads_out_of_its_part(path: str) -> None:
    with pytest.raises(NotFound):
        endpoint(path, [], []).request(TemplateValues())


@pytest.mark.parametrize("path", ["", None])
def test_no_missing_id_leads_to_all_records(path: str | None) -> None:
    with pytest.raises(BackendNonsense, match="no value for a name in the path"):
        endpoint(path, [], []).request(TemplateValues())
