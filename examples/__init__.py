"""Worked examples: practice systems of different kinds, each behind the gateway by a mapping."""
