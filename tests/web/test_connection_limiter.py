import pytest

from gateway.settings import StartRefused
from gateway.web import connection_limiter
from gateway.web.addresses import Proxies
from gateway.web.connection_limiter import (
    ADDRESS,
    GRACE,
    IDLE,
    LOOK_EVERY,
    MOST_OF_KEY,
    PROCESS,
    STRANGER,
    ConnectionLimiter,
    reserve_files,
)


class Visitor:
    """A connection that is idle since a moment, or busy."""

    def __init__(self, since: float | None) -> None:
        self.since = since
        self.is_silent = False
        self.waits_for: str | None = None
        self.is_known = True
        self.cut = False

    def idle_since(self) -> float | None:
        return self.since

    def cut_off(self) -> None:
        self.cut = True


class House:
    """A limiter whose clock stands, and what it told."""

    def __init__(self, most: int, most_of_one: int, **more: object) -> None:
        self.now = 1.0
        self.told: list[str] = []
        self.limiter = ConnectionLimiter(
            most,
            most_of_one,
            on_refusal=self.told.append,
            clock=lambda: self.now,
            **more,  # type: ignore[arg-type]
        )

    def come(self, since: float | None, address: str = "127.0.0.1") -> tuple[Visitor, bool]:
        visitor = Visitor(since)
        return visitor, self.limiter.admit(visitor, address)


def test_the_longest_idle_makes_room_and_who_is_busy_stays() -> None:
    house = House(3, 100)
    (busy, _), (old, _), (young, _) = house.come(None), house.come(5.0), house.come(7.0)
    new, let_in = house.come(8.0)
    assert (let_in, len(house.limiter)) == (True, 3)
    assert [each.cut for each in (busy, old, young, new)] == [False, True, False, False]
    assert house.told == [IDLE]


def test_who_has_asked_something_since_the_look_is_no_longer_the_longest_idle() -> None:
    house = House(3, 100)
    first, second, third = (house.come(at)[0] for at in (1.0, 2.0, 3.0))
    house.come(4.0)
    assert first.cut
    second.since = 9.0
    house.come(5.0)
    assert (second.cut, third.cut) == (False, True)


def test_who_has_just_come_and_said_nothing_yet_makes_no_room_before_others() -> None:
    house = House(3, 100)
    _, (new, _) = house.come(None), house.come(0.9)
    new.is_silent = True
    answered, _ = house.come(0.95)
    later, let_in = house.come(1.0)
    assert (let_in, new.cut, answered.cut) == (True, False, True)
    # somebody else came to be idle after that look: it is seen before the new one is put out
    house.now += LOOK_EVERY
    later.since = house.now
    assert house.come(house.now)[1]
    assert (new.cut, later.cut) == (False, True)
    # its time is over, and it still has said nothing
    house.now += GRACE
    assert house.come(house.now)[1]
    assert new.cut


def test_where_nobody_else_is_idle_who_has_just_come_makes_room() -> None:
    house = House(2, 100)
    house.come(None)
    new, _ = house.come(0.99)
    new.is_silent = True
    assert house.come(1.0)[1]
    assert new.cut


def test_a_crowd_of_calls_of_one_key_that_wait_makes_room_and_no_other_partners_do() -> None:
    house = House(MOST_OF_KEY + 4, 1000)
    honest, stranger, silent, _ = (house.come(at)[0] for at in (0.95, 0.95, 0.9, None))
    honest.waits_for, stranger.waits_for, silent.is_silent = "honest", "", True
    crowd = [house.come(0.95)[0] for _ in range(MOST_OF_KEY)]
    for each in crowd:
        each.waits_for = "stolen"
    # there is no crowd yet: who has just come goes, then who has no key, and nobody else
    assert house.come(None)[1]
    assert silent.cut
    house.now += LOOK_EVERY
    another, let_in = house.come(0.99)
    another.waits_for = "stolen"
    assert (let_in, stranger.cut) == (True, True)
    house.now += LOOK_EVERY
    assert house.come(None)[1]
    assert sum(each.cut for each in (*crowd, another)) == 1
    house.now += LOOK_EVERY
    assert not house.come(None)[1]
    assert not honest.cut
    assert house.told == [IDLE] * 3 + [PROCESS]


def test_of_those_who_came_since_the_last_look_one_is_refused_before_a_partner_is_cut_off() -> None:
    house = House(4, 100)
    waiting = [house.come(0.9)[0] for _ in range(3)]
    for each in waiting:
        each.waits_for = "partner"
    idle, _ = house.come(0.5)
    came = [house.come(1.0) for _ in range(3)]
    assert (idle.cut, [let_in for _, let_in in came]) == (True, [True, False, False])
    assert not any(each.cut for each in waiting)


def test_a_stranger_makes_room_before_a_crowd_whose_calls_have_just_begun_to_wait() -> None:
    house = House(MOST_OF_KEY + 2, 1000)
    stranger, *crowd = (house.come(at)[0] for at in (None, *[1.2] * (MOST_OF_KEY + 1)))
    stranger.is_known = False
    for each in crowd:
        each.waits_for = "stolen"
    house.now += GRACE
    assert house.come(None)[1]
    assert (stranger.cut, any(each.cut for each in crowd)) == (True, False)
    assert house.come(None)[1]
    assert any(each.cut for each in crowd)
    assert house.told == [STRANGER, IDLE]


def test_where_all_are_busy_the_new_one_is_refused() -> None:
    house = House(2, 100)
    visitors = [house.come(None)[0] for _ in range(2)]
    assert not house.come(1.0)[1]
    assert (house.told, len(house.limiter)) == ([PROCESS], 2)
    visitors[0].since = 5.0
    assert not house.come(1.0)[1]  # to look over all of them at every knock would cost
    house.now += LOOK_EVERY
    assert house.come(1.0)[1]
    assert visitors[0].cut


def test_where_all_are_busy_the_longest_without_a_key_makes_room() -> None:
    house = House(3, 100)
    known, first, second = (house.come(None)[0] for _ in range(3))
    first.is_known = second.is_known = False
    assert not house.come(1.0)[1]  # whose key is on its way can't be told yet
    house.now += GRACE
    new, let_in = house.come(1.0)
    new.is_known = False
    assert (let_in, known.cut, first.cut, second.cut) == (True, False, True, False)
    assert house.told == [PROCESS, STRANGER]


def test_an_address_has_its_share_and_gets_it_back() -> None:
    house = House(100, 2)
    one, _ = house.come(1.0)
    house.come(1.0)
    assert not house.come(1.0)[1]
    assert house.come(1.0, "127.0.0.2")[1]
    house.limiter.leave(one)
    house.limiter.leave(one)
    assert house.come(1.0)[1]
    assert not house.come(1.0)[1]
    assert house.told == [ADDRESS, ADDRESS]


def test_a_network_of_one_subscriber_is_one_address() -> None:
    house = House(100, 1)
    assert house.come(1.0, "2001:db8:0:1::1")[1]
    assert not house.come(1.0, "2001:db8:0:1:ffff::2")[1]
    assert house.come(1.0, "2001:db8:0:2::1")[1]
    assert house.come(1.0, "::ffff:10.0.0.1")[1]
    assert not house.come(1.0, "10.0.0.1")[1]
    assert house.come(1.0, "fe80::1%eth0")[1]


def test_a_network_of_one_home_holds_four_times_as_many() -> None:
    house = House(100, 2)
    came = [house.come(1.0, f"2001:db8:0:{number:x}::1")[1] for number in range(10)]
    assert came == [True] * 8 + [False] * 2
    assert house.come(1.0, "2001:db8:0:100::1")[1]  # the next network of 56 bits


def test_whoever_is_exempt_has_no_share() -> None:
    house = House(100, 1, proxies=Proxies(("10.0.0.5",)))
    assert all(house.come(1.0, "10.0.0.5")[1] for _ in range(5))


def test_nothing_is_kept_of_who_is_gone() -> None:
    house = House(2, 2)
    for number in range(100):
        visitor, let_in = house.come(1.0, f"10.0.0.{number}")
        assert let_in
        house.limiter.leave(visitor)
    assert (len(house.limiter), house.limiter._of, house.limiter._idle) == (0, {}, [])


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(
        connection_limiter.resource, "setrlimit", lambda _, both: given.append(both)
    )
    monkeypatch.setattr(connection_limiter.resource, "getrlimit", lambda _: (1024, 4096))
    reserve_files(700)
    assert given == []
    reserve_files(2000)
    assert given == [(2300, 4096)]
    with pytest.raises(StartRefused, match="connections: 4000 connections need 4300 open files"):
        reserve_files(4000)
