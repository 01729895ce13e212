"""Reads a policy file: the rules that it says, or everything that is wrong with it."""
