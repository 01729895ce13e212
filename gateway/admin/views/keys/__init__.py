"""Keys: found, made, looked at, changed, rotated and revoked."""

from gateway.admin.routes import Page, get, post
from gateway.admin.views.keys.card import card
from gateway.admin.views.keys.changing import change, changing, make, making, sees
from gateway.admin.views.keys.ending import revoke, rotate
from gateway.admin.views.keys.listing import listing
from gateway.administrators.roles import Right

PAGES = (
    get("/keys", listing),
    Page(method="GET", path="/keys/new", view=making, needs=Right.KEYS),
    post("/keys/new", make, Right.KEYS),
    post("/keys/sees", sees, Right.KEYS),
    get("/keys/{id}", card),
    Page(method="GET", path="/keys/{id}/edit", view=changing, needs=Right.KEYS),
    post("/keys/{id}/edit", change, Right.KEYS),
    post("/keys/{id}/rotate", rotate, Right.KEYS),
    post("/keys/{id}/revoke", revoke, Right.KEYS),
)
