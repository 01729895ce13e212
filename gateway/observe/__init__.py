"""Tells what happens: the access log, the event log, the metrics and the traces, never a value."""
