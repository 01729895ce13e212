"""Readiness as a test looks at it: what was remembered a moment ago counts no more."""

from gateway.lifecycle import Gateway


def forget_answers(gateway: Gateway) -> None:
    """Each part is asked anew by whoever asks next, and waited for."""
    for part in gateway.readiness._parts:
        part.answer = None
