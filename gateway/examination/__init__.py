"""Runs every operation of the contract on real rows, whatever adapter is behind it."""

from gateway.examination.examined import examined
from gateway.examination.findings import problems

__all__ = ["examined", "problems"]
