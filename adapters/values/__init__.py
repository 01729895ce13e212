"""How one value of a practice system is written, read, and written back."""
