"""The audit: what partners were shown, who has seen a record, and what administrators did."""

from gateway.admin.routes import get, post
from gateway.admin.views.audit import deeds, export, listing, verification, who
from gateway.administrators.roles import Right

PAGES = (
    get("/audit", listing.listing),
    get("/audit/who", who.who),
    get("/audit/deeds", deeds.deeds),
    get("/audit/verification", verification.state, polled=True),
    post("/audit/export", export.export, Right.READ),
    post("/audit/verify", verification.begin, Right.CHECK),
)
