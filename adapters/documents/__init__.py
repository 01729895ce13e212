"""Files that people write: strict YAML with places, and what is wrong with it."""
