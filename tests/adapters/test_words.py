"""Words as a search compares them."""

from adapters.words import all_begin


def test_each_word_begins_a_word_whatever_case_and_accents() -> None:
    assert all_begin("ETI zo", ["Zoé", "Étienne"])
    assert all_begin("d'ar", ["Jeanne d'Arc"])
    assert not all_begin("tienne", ["Étienne", None])
    assert not all_begin("zoe brun", ["Zoé", "Étienne"])
    assert not all_begin(" - ", ["a - b"])
