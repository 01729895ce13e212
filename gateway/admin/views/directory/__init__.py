"""The directory: public ids that partners need, and how the practice system is connected."""

from gateway.admin.routes import get, post
from gateway.admin.views.directory import checking, ids
from gateway.administrators.roles import Right

PAGES = (
    get("/directory", ids.directory),
    get("/directory/checked", checking.state, polled=True),
    post("/directory/check", checking.begin, Right.CHECK),
)
