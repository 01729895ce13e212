"""Words as a search compares them."""

from string import ascii_letters

from adapters.sql.engines.postgres import ACCENTED, PLAIN
from adapters.values.convert import all_begin


def test_each_word_begins_a_word_whatever_case_and_accents() -> None:
    assert all_begin("ETI zo", ["Zoé", "Étienne"])
    assert all_begin("d'ar", ["Jeanne d'Arc"])
    assert not all_begin("tienne", ["Étienne", None])
    assert not all_begin("zoe brun", ["Zoé", "Étienne"])
    assert not all_begin(" - ", ["a - b"])


def test_a_letter_without_an_accent_stays_and_is_found_early_in_the_table() -> None:
    """A server walks through the table for every letter: behind the accents a search took 6 x."""
    places = {letter: ACCENTED.index(letter) for letter in ascii_letters}
    assert {PLAIN[place] == letter for letter, place in places.items()} == {True}
    assert max(places.values()) <= len(ascii_letters)
    assert places["e"] < places["z"] < places["Z"]
