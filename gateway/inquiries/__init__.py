"""Answers what a clinic asks of its gateway, by a command or in the panel."""
