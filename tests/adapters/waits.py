"""How long the adapters of a conformance test wait for their practice system.

A test of a system that is slow waits for the time to run out: there it is short. All other tests
get answers, be the machine as busy as it likes: there it is long.
"""

from typing import NamedTuple

import pytest

from adapters.conformance.practice import needs_of


class Waits(NamedTuple):
    """Seconds: an adapter's `timeout` and `booking_timeout`."""

    read: float
    booking: float


HURRIED = Waits(0.7, 2.0)
PATIENT = Waits(15.0, 30.0)


def waits_of(request: pytest.FixtureRequest) -> Waits:
    """Those of the test that asks."""
    return HURRIED if "slow" in needs_of(request.function) else PATIENT
