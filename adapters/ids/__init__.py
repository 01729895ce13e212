"""Public ids: what a resource's keys look like from outside, and the way back.

A key that fits is sealed into its id and read out of it again. A longer one, and one of several
columns, becomes a keyed hash, found again through a table that the gateway keeps. A UUID of the
practice system's own is its own id, in lower case whatever case it is kept in.
"""
