"""The panel's pages, a module for each part; PAGES is all of them."""

from gateway.admin.routes import Page
from gateway.admin.views import (
    account,
    audit,
    directory,
    keys,
    people,
    policy,
    preview,
    sign_in,
    traffic,
)

PAGES: tuple[Page, ...] = (
    *sign_in.PAGES,
    *account.PAGES,
    *keys.PAGES,
    *audit.PAGES,
    *directory.PAGES,
    *preview.PAGES,
    *policy.PAGES,
    *traffic.PAGES,
    *people.PAGES,
)
