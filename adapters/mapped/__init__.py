"""Answers calls from a mapped practice system, whichever way that is asked."""
