"""What a partner sees: a record as a key or a level gets it, beside the whole one."""

from gateway.admin.routes import get, post
from gateway.admin.views.preview.matches import matches
from gateway.admin.views.preview.page import look, preview
from gateway.administrators.roles import Right

PAGES = (
    get("/preview", preview),
    get("/preview/keys", matches),
    post("/preview/record", look, Right.READ),
)
