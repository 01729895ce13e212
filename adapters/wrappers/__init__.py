"""Adapters around an adapter: one that remembers, one that guards."""
