"""Tells people of a policy: what it shows, on which line, and what differs from another."""
