"""Practice systems to learn from: each with its schema, its made-up data, and its mapping."""
