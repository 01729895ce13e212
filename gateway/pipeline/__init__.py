"""The road of a call, from its key to its answer; no web framework here."""
