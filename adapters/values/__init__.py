"""Reads and writes single values in the ways in which practice systems keep them."""
