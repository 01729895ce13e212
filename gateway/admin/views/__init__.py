"""The panel's pages, a module for each area; PAGES holds all of them."""
# ruff: noqa: F401 - the imports register the pages

from gateway.admin.views import audit, directory, keys, people, policy, preview, sign_in, traffic
from gateway.admin.visit import PAGES

__all__ = ["PAGES"]
