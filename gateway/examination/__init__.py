"""Runs every operation of the contract on real rows, whatever adapter is behind it."""

from gateway.examination.rounds import examined, problems

__all__ = ["examined", "problems"]
