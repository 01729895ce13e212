"""Tells who is calling: keys, their secrets, their store, and the ring that is asked."""
