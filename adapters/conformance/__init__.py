"""What every adapter promises, as tests: for ours, and for a clinic's own.

    class TestMyAdapter(AdapterConformance):
        cannot = {"garble"}  # verbs of the practice that it lacks: their tests are left out

        @pytest.fixture
        async def practice(self, tmp_path: Path) -> AsyncIterator[Practice]:
            yield MyPractice(tmp_path)

Nothing else imports this package: it needs pytest, which `pip install 'clinic-gateway[test]'`
brings, with `asyncio_mode = "auto"`. docs/own-adapter.md shows a whole example.
"""

from collections.abc import AsyncIterator, Set
from typing import ClassVar

import pytest

# before they are imported: so a failed assert says what was compared
pytest.register_assert_rewrite(
    *(f"{__name__}.{each}" for each in ("practice", "records", "pages", "diary", "failures"))
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
    """The suite: a subclass whose name begins with Test has a fixture `practice`.

    `cannot` names the verbs of Practice that this one lacks; the tests that need one of them are
    not collected.
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
        """One that the practice opened."""
        opened = practice.open()
        yield opened
        await opened.aclose()

    @pytest.fixture
    def probe(self, practice: Practice, adapter: Adapter) -> Probe:
        """Asks that adapter at the present of its practice."""
        return Probe(practice, adapter)
