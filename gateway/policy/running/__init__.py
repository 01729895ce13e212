"""Keeps a policy running: follows its file, and keeps in the store what ran."""
