"""The policy: what runs, what waits, who sees what, and what happened so far."""

from gateway.admin.routes import get, post
from gateway.admin.views.policy.deciding import approve, decline
from gateway.admin.views.policy.page import answers, policy
from gateway.admin.views.policy.past import history, version
from gateway.admin.views.policy.sheets import page, table
from gateway.administrators.roles import Right

PAGES = (
    get("/policy", policy),
    get("/policy/answers", answers),
    get("/policy/history", history),
    get("/policy/versions/{hash}", version),
    get("/policy/page", page),
    get("/policy/table", table),
    post("/policy/approve", approve, Right.POLICY),
    post("/policy/decline", decline, Right.POLICY),
)
