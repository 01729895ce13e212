"""What happened: the access log, the audit, the event log and the metrics. Never a value."""
