"""Takes a call from its key to its answer. No web framework is used here."""
