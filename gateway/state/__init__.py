"""The gateway's own state: one thing of several parts, which belong together or are refused."""

from gateway.state.folder import (
    RUN,
    begin_state,
    hand_over,
    make_folder,
    make_run,
    open_own_store,
    open_state,
    open_to_others,
    opened,
    opened_if_begun,
    sole_use,
    store_place,
)

__all__ = [
    "RUN",
    "begin_state",
    "hand_over",
    "make_folder",
    "make_run",
    "open_own_store",
    "open_state",
    "open_to_others",
    "opened",
    "opened_if_begun",
    "sole_use",
    "store_place",
]
