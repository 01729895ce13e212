"""Reads and books in a practice system's SQL database, as a mapping says."""
