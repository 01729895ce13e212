"""The mapping language, which is the same for databases and for JSON over HTTP."""
