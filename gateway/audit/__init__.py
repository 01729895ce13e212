"""Who was shown what: entries in chained day files, checked, indexed, and kept for a set time."""
