"""What every adapter promises, promised by the one for JSON over HTTP too."""

from tests.adapters.test_conformance import (  # noqa: F401 - run here with this folder's adapter
    test_a_booking_takes_its_slot_reads_back_and_can_be_found,
    test_a_filter_keeps_just_the_records_that_match,
    test_it_answers_and_filters_what_the_operations_need,
    test_of_many_at_once_one_gets_the_slot,
    test_pages_hold_every_record_once_in_one_order_whatever_their_size,
    test_records_are_what_the_contract_says_of_them,
    test_since_is_inclusive_and_a_search_is_of_all_words,
    test_what_names_nothing_is_not_found,
    test_who_is_not_there_is_not_found_and_books_nothing,
)
