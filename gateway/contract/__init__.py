"""The public interface as data: what exists, who may call it, what can go wrong.

Routes, validation, redaction, the OpenAPI document, the tables of the README and most of the tests
are derived from these tables. It uses the standard library only and does no I/O.
"""
