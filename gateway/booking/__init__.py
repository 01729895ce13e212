"""Books each appointment once and only once, by a ledger."""
