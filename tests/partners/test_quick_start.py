"""The Python quick start as the page prints it, at clinics where it cannot end well."""

from functools import partial
from typing import Any

import httpx
import pytest

from tests.partners.page import blocks

ANIMAL, OWNER = {"id": "p1", "clientId": "c1", "name": "Rex"}, {"id": "c1", "lastName": "Martin"}
FREE = [{"startTime": "2026-12-01T09:00:00+01:00"}]
WELL: dict[str, Any] = {
    "/patients": [ANIMAL],
    "/clients/c1": OWNER,
    "/appointments/types": [{"id": "t1", "name": "Vaccination"}],
    "/appointments/available-slots": FREE,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"/patients": []}, "No animal has an owner"),
        ({"/patients": [{**ANIMAL, "clientId": None}]}, "No animal has an owner"),
        ({"/clients/c1": httpx.Response(404)}, "No animal has an owner"),
        ({"/appointments/types": []}, "no types of visit"),
        ({"/appointments/available-slots": []}, "no free time"),
        ({"/appointments": httpx.Response(409)}, "was taken meanwhile"),
        ({"/patients": httpx.Response(429, headers={"Retry-After": "3000"})}, "in 3000 seconds"),
    ],
)
def test_what_it_lacks_is_said_in_a_sentence_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], said: str
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        found = {**WELL, **changes}[request.url.path]
        return found if isinstance(found, httpx.Response) else httpx.Response(200, json=found)

    there = partial(httpx.Client, transport=httpx.MockTransport(answer))
    monkeypatch.setattr(httpx, "Client", there)
    for name in ("BASE", "KEY", "VET"):
        monkeypatch.setenv(name, "http://127.0.0.1")
    [code] = blocks("With Python", "python")
    with pytest.raises(SystemExit, match=said):
        exec(code, {})
