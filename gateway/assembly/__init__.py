"""Puts a process together: opens its parts from the settings, and closes them."""
