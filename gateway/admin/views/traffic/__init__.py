"""Traffic and health: what comes, how quickly it is answered, and how each part fares."""

from gateway.admin.routes import get
from gateway.admin.views.traffic.page import live, page

PAGES = (get("/traffic", page), get("/traffic/live", live, polled=True))
