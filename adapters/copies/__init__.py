"""Copies the files of desktop products (Access, dBASE, FoxPro) into an SQLite file, time and again.

The files are only read. `keeper` has a program of its own look at them every so often.
"""
