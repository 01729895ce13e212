"""The mapping language: what both kinds of practice systems say the same way."""
