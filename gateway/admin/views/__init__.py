"""The panel's pages, a module for each area; PAGES is all of them."""

from gateway.admin.views import (  # noqa: F401 - each makes its pages
    audit,
    directory,
    keys,
    people,
    policy,
    preview,
    sign_in,
    traffic,
)
from gateway.admin.visit import PAGES

__all__ = ["PAGES"]
