"""Times as people read them: on the clinic's clock, in the words of the page's language."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from gateway.admin.words import Words

_MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "fr": [
        "janv.",
        "févr.",
        "mars",
        "avr.",
        "mai",
        "juin",
        "juil.",
        "août",
        "sept.",
        "oct.",
        "nov.",
        "déc.",
    ],
}


class Clock:
    """Writes times for one page."""

    def __init__(self, zone: ZoneInfo, words: Words, now: Callable[[], datetime]) -> None:
        self.zone = zone
        self._words = words
        self._now = now

    def day(self, moment: datetime | date) -> str:
        """`22 Nov 2026`; in French the first of a month is its `1er`."""
        local = moment.astimezone(self.zone) if isinstance(moment, datetime) else moment
        month = _MONTHS[self._words.language][local.month - 1]
        number = "1er" if local.day == 1 and self._words.language == "fr" else local.day
        return f"{number} {month} {local.year}"

    def time(self, moment: datetime) -> str:
        """`09:14`, in each language."""
        return f"{moment.astimezone(self.zone):%H:%M}"

    def at(self, moment: datetime) -> str:
        """Day and time."""
        return f"{self.day(moment)}, {self.time(moment)}"

    def exact(self, moment: datetime) -> str:
        """Day and time to the second."""
        return f"{self.day(moment)}, {moment.astimezone(self.zone):%H:%M:%S}"

    def ago(self, moment: datetime) -> str:
        """How long ago, roughly; the day where it is long."""
        words, past = self._words, self._now() - moment
        if past < timedelta(minutes=1):
            return words("common.just_now")
        if past < timedelta(hours=1):
            return words("common.minutes_ago", past // timedelta(minutes=1))
        if past < timedelta(days=1):
            return words("common.hours_ago", past // timedelta(hours=1))
        if past < timedelta(days=90):
            return words("common.days_ago", past // timedelta(days=1))
        return self.day(moment)
