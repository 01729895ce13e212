"""Checks a call of a JSON backend's mapping: what its path, parameters and body are filled with."""

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Group

from adapters.base import FieldShape
from adapters.documents.document import Document, Place
from adapters.documents.problems import Problem, did_you_mean
from adapters.mapping.conversion import DRAFT_FIELDS, ConversionChecker
from adapters.rest.mapping import Call, Tree, Value


class CallChecker:
    """What the models cannot see of a call; `secrets` are those that the settings give."""

    def __init__(
        self, document: Document, conversions: ConversionChecker, secrets: frozenset[str]
    ) -> None:
        self.document = document
        self.conversions = conversions
        self.secrets = secrets

    def only_get(self, place: Place, call: Call) -> Iterator[Problem]:
        """Of a call that reads."""
        if call.get is None:
            yield self.document.problem((*place, call.method), "what reads is a get", at_key=True)

    def call(
        self, place: Place, call: Call, shapes: Group[str, FieldShape], made: Iterable[str]
    ) -> Iterator[Problem]:
        """`shapes` are those of the names it may be filled with, `made` what earlier calls keep."""
        known = [*shapes, *made]
        for name in call.names:
            if name not in known:
                text = f"nothing here is called {name}{did_you_mean(name, known)}"
                yield self.document.problem((*place, call.method), text)
        for name, tree in call.query.items():
            yield from self.tree((*place, "query", name), tree, shapes, made)
        if call.body is not None:
            yield from self.tree((*place, "body"), call.body, shapes, made)

    def tree(
        self, place: Place, tree: Tree, shapes: Group[str, FieldShape], made: Iterable[str]
    ) -> Iterator[Problem]:
        """The same of JSON with values in it."""
        root: object = tree.root
        if isinstance(root, Value):
            yield from self._value(place, root, shapes, made)
        elif isinstance(root, dict | list):
            for name, each in root.items() if isinstance(root, dict) else enumerate(root):
                yield from self.tree((*place, name), each, shapes, made)

    def _value(
        self, place: Place, value: Value, shapes: Group[str, FieldShape], made: Iterable[str]
    ) -> Iterator[Problem]:
        if value.secret is not None:
            yield from self.secret((*place, "secret"), value.secret)
        if value.made is not None and value.made not in made:
            near = did_you_mean(value.made, made)
            text = f"no call before this one keeps {value.made}{near}"
            yield self.document.problem((*place, "made"), text)
        for source in ("draft", "given"):
            name = getattr(value, source)
            if name is None:
                continue
            if name not in shapes or (source == "draft") != (shapes is DRAFT_FIELDS):
                text = f"nothing here is called {name}{did_you_mean(name, shapes)}"
                yield self.document.problem((*place, source), text)
                continue
            # what is only sent may leave the time of a day out
            yield from self.conversions.problems(place, value, shapes[name], whole=False)

    def secret(self, place: Place, name: str) -> Iterator[Problem]:
        """Whether the settings give it."""
        if name not in self.secrets:
            text = f"backend.{name} is not set, which this needs: write it into gateway.yaml"
            yield self.document.problem(place, f"{text} or GATEWAY_BACKEND_{name.upper()}")
