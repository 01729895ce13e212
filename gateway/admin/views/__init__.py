"""The panel's pages, a module for each area; PAGES is all of them."""
# ruff: noqa: F401 - each makes its pages

from gateway.admin.views import audit, directory, keys, people, policy, preview, sign_in, traffic
from gateway.admin.visit import PAGES

__all__ = ["PAGES"]
