"""Public ids: how a resource's keys are shown to partners, and found again.

A short key is sealed into its id and read out of it again. A longer one, and one of several
columns, becomes a keyed hash, found again through a table that the gateway keeps. A UUID of the
practice system is its own id, always in lower case.
"""
