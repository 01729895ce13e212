"""A cloud practice system that speaks JSON over HTTP, and behaves as such systems do."""
