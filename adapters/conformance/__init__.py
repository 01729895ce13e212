"""Tests what every adapter promises, ours and a clinic's own.

    class TestMyAdapter(AdapterConformance):
        cannot = {"garble"}  # verbs that the practice lacks: tests that need them are left out

        @pytest.fixture
        async def practice(self, tmp_path: Path) -> AsyncIterator[Practice]:
            yield MyPractice(tmp_path)

Nothing else imports this package, as it needs pytest, which `pip install '.[test]'`
brings, with `asyncio_mode = "auto"`. docs/own-adapter.md shows a whole example.
"""

from collections.abc import AsyncIterator, Set
from typing import ClassVar

import pytest

# before they are imported, so that a failed assert shows what was compared
pytest.register_assert_rewrite(
    *(f"{__name__}.{module}" for module in ("practice", "records", "pages", "diary", "failures"))
)

from adapters.base import Adapter  # noqa: E402
from adapters.conformance.diary import BookingPromises, DiaryPromises  # noqa: E402
from adapters.conformance.failures import FailurePromises  # noqa: E402
from adapters.conformance.pages import NarrowingPromises, PagePromises  # noqa: E402
from adapters.conformance.practice import VERBS, Place, Practice, Probe, needs_of  # noqa: E402
from adapters.conformance.records import RecordPromises  # noqa: E402
from adapters.documents.problems import did_you_mean  # noqa: E402

__all__ = ["AdapterConformance", "Place", "Practice"]


class AdapterConformance(
    RecordPromises, PagePromises, NarrowingPromises, DiaryPromises, BookingPromises, FailurePromises
):
    """The suite; a subclass has a name that begins with Test, and a fixture `practice`.

    `cannot` names the verbs of Practice that its own lacks; tests that need one of them are not
    collected.
    """

    cannot: ClassVar[Set[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for verb in cls.cannot - VERBS:
            meant = did_you_mean(verb, VERBS)
            raise TypeError(f"{cls.__name__}.cannot names {verb}, which is no verb{meant}")
        for name in dir(cls):
            if needs_of(getattr(cls, name)) & cls.cannot:
                setattr(cls, name, None)

    @pytest.fixture
    async def adapter(self, practice: Practice) -> AsyncIterator[Adapter]:
        """Yields an adapter that the practice opened."""
        opened = practice.open()
        yield opened
        await opened.aclose()

    @pytest.fixture
    def probe(self, practice: Practice, adapter: Adapter) -> Probe:
        """Returns a probe that asks that adapter at the present of its practice."""
        return Probe(practice, adapter)
