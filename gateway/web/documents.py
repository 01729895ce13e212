"""The interface's description, for programs and for people: whole, or as one key sees it.

It needs no key and is no operation: it does not count against a limit.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import orjson

from adapters.base import Adapter
from gateway.contract.fields import Resource
from gateway.contract.openapi import View, document
from gateway.contract.operations import BASE_PATH, Operation, Param
from gateway.contract.resources import GOVERNED
from gateway.keys.base import KeyRing
from gateway.keys.key import Key
from gateway.pipeline.authenticate import authenticate
from gateway.pipeline.pipeline import servable
from gateway.policy.policy import Policy
from gateway.web import docs

JSON = "application/json"
OPENAPI = f"{BASE_PATH}/openapi.json"
DOCS = f"{BASE_PATH}/docs"
NAMES: Mapping[str, str] = {OPENAPI: "openapi", DOCS: "docs"}
_KEPT = 64


class Document(NamedTuple):
    """Bytes, their media type, and the headers that belong to them."""

    body: bytes
    kind: str
    headers: Mapping[str, str]


class Documents:
    """Makes each view once and keeps some of them."""

    def __init__(
        self,
        *,
        public_url: str,
        keys: KeyRing,
        policy: Callable[[], Policy],
        adapter: Adapter,
        now: Callable[[], datetime],
    ) -> None:
        self._public_url = public_url
        self._keys = keys
        self._policy = policy
        self._adapter = adapter
        self._now = now
        self._kept: dict[object, Document] = {}

    def get(self, path: str, secrets: Sequence[str]) -> tuple[Document, Key | None]:
        """The document at OPENAPI or DOCS; KeyInvalid for a key that is not good."""
        key = authenticate(secrets, self._keys, self._now(), settled=True) if secrets else None
        policy = self._policy()
        view = (path, policy.hash, key and (key.permissions, _levels(key)))
        found = self._kept.get(view)
        if found is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            found = self._kept[view] = self._make(path, key, policy)
        return found, key

    def _make(self, path: str, key: Key | None, policy: Policy) -> Document:
        def seen(resource: Resource) -> View | None:
            return None if key is None else policy.view(resource, key.level_for(resource.name))

        data = document(
            public_url=self._public_url,
            servable=self._servable,
            visible=seen,
            permissions=None if key is None else key.permissions,
        )
        if path == OPENAPI:
            return Document(orjson.dumps(data), JSON, {})
        headers = {"Content-Security-Policy": docs.CONTENT_SECURITY_POLICY}
        return Document(docs.html(data).encode(), "text/html; charset=utf-8", headers)

    def _servable(self, operation: Operation, param: Param) -> bool:
        return servable(operation, param, self._adapter)


def _levels(key: Key) -> tuple[str, ...]:
    return tuple(key.level_for(resource.name) for resource in GOVERNED)
