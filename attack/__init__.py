"""Attacks on the gateway, as an attacker would run them: `make attack`."""
