"""The public interface as data: what exists, who may call it, what can go wrong.

Everything else is read off these tables: routes, validation, redaction, the OpenAPI document,
the tables of the README and most of the tests. Standard library only, no input or output.
"""
