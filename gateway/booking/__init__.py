"""Once and only once: the ledger of creations."""
