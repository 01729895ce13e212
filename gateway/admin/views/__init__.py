"""The panel's pages, a module for each area; PAGES is all of them."""

from gateway.admin.views import (
    audit,
    directory,
    key_form,
    people,
    policy,
    preview,
    sign_in,
    traffic,
)
from gateway.admin.visit import PanelPage

PAGES: tuple[PanelPage, ...] = (
    *sign_in.PAGES,
    *key_form.PAGES,
    *audit.PAGES,
    *directory.PAGES,
    *preview.PAGES,
    *policy.PAGES,
    *traffic.PAGES,
    *people.PAGES,
)
