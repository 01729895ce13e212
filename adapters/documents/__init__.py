"""Files that people write: strict YAML with the place of each value, and their problems."""
