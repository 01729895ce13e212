"""The users of the panel: their names, roles, passwords and sessions, and what they did."""
