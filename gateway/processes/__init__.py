"""The processes of one gateway on one machine: a parent, its children, and their reports."""
