"""Wrong passwords slow strangers down, and keep nobody out whose browser is known, nor others."""

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from argon2 import PasswordHasher, extract_parameters
from click.testing import CliRunner
from pydantic import SecretStr

from gateway.administrators import passwords
from gateway.administrators.administrator import Administrator, AdministratorStore, Credential, Role
from gateway.administrators.passwords import (
    FREE,
    MOST_WAITING,
    AttemptLimiter,
    Passwords,
    TooManyWaiting,
    is_one_time,
    made_up,
    of_name,
    one_time_digest,
)
from gateway.administrators.sessions import DEVICE_LASTS, device_of, device_token
from gateway.cli import main
from gateway.store import Store
from tests.admin.manager import PASSWORD, Manager, Page, guessed, manager_of, tried
from tests.conftest import RunningGateway, Start

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
async def claire(running_gateway: RunningGateway, session: aiohttp.ClientSession) -> Manager:
    return await manager_of(running_gateway, session)


@pytest.fixture
async def denis(running_gateway: RunningGateway, session: aiohttp.ClientSession) -> Manager:
    return await manager_of(running_gateway, session, name="Denis")


def device(manager: Manager) -> str:
    """The name of the cookie by which the browser is known."""
    [name] = [each for each in manager.cookies if "clinic-gateway-device-" in each]
    return name


def device_subject(manager: Manager) -> str:
    """What attempts from the known browser count to."""
    return f"device {manager.cookies[device(manager)].partition('.')[0]}"


def signed_out(manager: Manager, *, name: str = "", known: bool = True) -> Manager:
    """The same browser without its session; unless it is `known`, one that nobody used before."""
    other = manager.other(name)
    if known:
        other.cookies[device(manager)] = manager.cookies[device(manager)]
    return other


@pytest.mark.parametrize("guesses", [7, 40])
async def test_strangers_who_guess_keep_out_no_known_browser_and_nobody_else_of_their_address(
    claire: Manager, denis: Manager, running_gateway: RunningGateway, guesses: int
) -> None:
    stranger = signed_out(claire, known=False)
    ends = [(await stranger.sign_in("a guess of mine")).status for _ in range(guesses)]
    assert ends[:FREE] == [401] * FREE
    assert set(ends) <= {401, 429}
    # some more make the pause longer than this test takes, however busy the machine is
    await guessed(running_gateway.gateway.store, "Claire", 6)
    assert (await stranger.sign_in()).status == 429
    assert (await signed_out(claire).sign_in()).status == 303
    assert (await signed_out(denis, known=False).sign_in()).status == 303


async def test_who_comes_meanwhile_signs_in_while_forty_guess_at_once(
    claire: Manager, denis: Manager
) -> None:
    async def guess() -> int:
        return (await signed_out(claire, known=False).sign_in("a guess of mine")).status

    guessing = [asyncio.create_task(guess()) for _ in range(40)]
    known = await signed_out(claire).sign_in()
    new = await signed_out(denis, known=False).sign_in()
    ends = await asyncio.gather(*guessing)
    assert (known.status, new.status) == (303, 303)
    assert set(ends) == {401, 429}
    assert FREE <= ends.count(401) <= FREE + 6  # a pause may end meanwhile on a busy machine


async def test_a_browser_has_a_count_of_its_own(
    claire: Manager, running_gateway: RunningGateway
) -> None:
    browser = signed_out(claire)
    ends = [(await browser.sign_in("a slip of mine")).status for _ in range(FREE)]
    assert ends == [401] * FREE
    own = device_subject(claire)
    await tried(running_gateway.gateway.store, own, 4)
    # its own slips count neither to strangers nor to another browser of the same person
    stranger = signed_out(claire, known=False)
    ends = [(await stranger.sign_in("a guess of mine")).status for _ in range(FREE)]
    assert ends == [401] * FREE
    await guessed(running_gateway.gateway.store, "Claire", 4)
    assert (await browser.sign_in()).status == 429


async def test_whoever_stole_a_cookie_does_not_shut_out_the_browser_it_came_from(
    claire: Manager, running_gateway: RunningGateway
) -> None:
    store, thief, owner = running_gateway.gateway.store, signed_out(claire), signed_out(claire)
    ends = [(await thief.sign_in("a guess of mine")).status for _ in range(FREE)]
    assert ends == [401] * FREE
    stolen = device_subject(claire)
    await tried(store, stolen, 4)
    assert (await owner.sign_in()).status == 303
    # the thief is forgiven nothing, and the owner has another cookie with a count of its own
    assert await AttemptLimiter(store).try_now(stolen, datetime.now(UTC)) > timedelta()
    await guessed(store, "Claire", FREE + 4)
    assert (await signed_out(claire).sign_in()).status == 429
    assert (await signed_out(owner).sign_in()).status == 303


async def test_a_stolen_cookie_takes_no_turn_of_known_browsers_while_its_own_count_waits(
    claire: Manager, running_gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = device_subject(claire)
    await tried(running_gateway.gateway.store, own, FREE + 4)
    monkeypatch.setattr(passwords, "MOST_WAITING", 0)
    assert (await signed_out(claire).sign_in("a guess of mine")).status == 503


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.at


@pytest.mark.parametrize("cookies", [0, pytest.param(1, marks=pytest.mark.long), 2])
async def test_each_stolen_cookie_gives_seventeen_guesses_in_an_hour_and_then_four(
    start_gateway: Start, session: aiohttp.ClientSession, cookies: int
) -> None:
    """And those of strangers besides: docs/operations.md tells these numbers."""
    clock = Clock()
    running = await start_gateway(now=clock)
    owners = [await manager_of(running, session) for _ in range(max(1, cookies))]
    thieves = [signed_out(each, known=bool(cookies)) for each in owners]
    begun, by_hour = clock.at, [0, 0, 0]
    while clock.at < begun + len(by_hour) * HOUR:
        waits = list[int]()
        for thief in thieves:
            while (told := await thief.sign_in("a guess of mine")).status == 401:
                by_hour[(clock.at - begun) // HOUR] += 1
            assert told.status == 429
            waits.append(int(told.headers["Retry-After"]))
        clock.at += timedelta(seconds=min(waits))
    assert by_hour == [17 * (cookies + 1), 4 * (cookies + 1), 4 * (cookies + 1)]


@pytest.mark.parametrize("longer", ["browser", "strangers"])
async def test_a_known_browser_is_told_the_shorter_of_the_two_pauses(
    start_gateway: Start, session: aiohttp.ClientSession, longer: str
) -> None:
    clock = Clock()
    running = await start_gateway(now=clock)
    claire = await manager_of(running, session)
    own = device_subject(claire)
    longest, shortest = (own, of_name("Claire"))[:: 1 if longer == "browser" else -1]
    failures = AttemptLimiter(running.gateway.store)
    for subject in [longest] * (FREE + 3) + [shortest] * FREE:
        while wait := await failures.try_now(subject, clock.at):
            clock.at += wait
    assert await failures.try_now(longest, clock.at) == timedelta(seconds=8)
    told = await signed_out(claire).sign_in()
    assert (told.status, told.headers["Retry-After"]) == (429, "1")


async def test_each_sign_in_gives_a_new_token_and_what_was_forgiven_is_the_browsers(
    claire: Manager, running_gateway: RunningGateway
) -> None:
    store = running_gateway.gateway.store
    await guessed(store, "Claire", FREE + 4)
    browser = signed_out(claire)
    assert (await browser.sign_in()).status == 303
    assert browser.cookies[device(claire)] != claire.cookies[device(claire)]
    # who is let in at a known browser does not give strangers five guesses more
    assert (await signed_out(claire, known=False).sign_in()).status == 429


FORGERIES: list[Callable[[str], str]] = [
    lambda token: "",
    lambda token: "x",
    lambda token: "..",
    lambda token: token[:-1] + ("0" if token[-1] != "0" else "1"),
    lambda token: "other" + token,
    lambda token: re.sub(r"\.\d+\.", ".9999999999.", token),
    lambda token: token.rpartition(".")[0] + ".",
    lambda token: token + "\u00e9",
]


async def test_a_forged_cookie_is_as_none(claire: Manager, running_gateway: RunningGateway) -> None:
    # so many that the pause is longer than this test takes
    await guessed(running_gateway.gateway.store, "Claire", FREE + 7)
    for number, forged in enumerate(FORGERIES):
        forger = signed_out(claire)
        forger.cookies[device(claire)] = forged(claire.cookies[device(claire)])
        assert (await forger.sign_in()).status == 429, number
    assert (await signed_out(claire).sign_in()).status == 303


async def test_a_stolen_cookie_of_one_helps_nothing_with_another_and_opens_nothing(
    claire: Manager, denis: Manager, running_gateway: RunningGateway
) -> None:
    await guessed(running_gateway.gateway.store, "Denis", FREE + 4)
    thief = signed_out(claire, name="Denis")
    assert (await thief.sign_in()).status == 429
    thief.cookies[device(denis)] = claire.cookies[device(claire)]
    assert (await thief.sign_in()).status == 429
    assert (await signed_out(claire).get("/keys")).status == 303


async def test_a_changed_password_makes_every_other_browser_unknown(
    claire: Manager, running_gateway: RunningGateway
) -> None:
    before, new = signed_out(claire), "another battery staple"
    form = {"old": PASSWORD, "new": new, "again": new}
    assert (await claire.fill("/account", form, "/account/password")).status == 303
    await guessed(running_gateway.gateway.store, "Claire", FREE + 4)
    assert (await before.sign_in(new)).status == 429
    assert (await signed_out(claire).sign_in(new)).status == 303


async def test_two_who_share_a_browser_are_both_known_there(
    claire: Manager, denis: Manager, running_gateway: RunningGateway
) -> None:
    shared = claire.other("Denis")
    shared.cookies[device(claire)] = claire.cookies[device(claire)]
    assert (await shared.sign_in()).status == 303
    for name in ("Claire", "Denis"):
        await guessed(running_gateway.gateway.store, name, FREE + 4)
        again = claire.other(name)
        again.cookies = {each: text for each, text in shared.cookies.items() if "device" in each}
        assert (await again.sign_in()).status == 303


async def test_a_known_browser_is_known_to_every_gateway_of_the_store(
    start_gateway: Start, session: aiohttp.ClientSession, postgres_place: str
) -> None:
    one = await start_gateway("one", store=SecretStr(postgres_place))
    other = await start_gateway("other", store=SecretStr(postgres_place))
    claire = await manager_of(one, session)
    stranger = signed_out(claire, known=False)
    ends = [(await stranger.sign_in("a guess of mine")).status for _ in range(FREE)]
    assert ends == [401] * FREE
    assert other.gateway.panel is not None
    stranger.base = other.gateway.panel.url
    await guessed(other.gateway.store, "Claire", 4)
    assert (await stranger.sign_in()).status == 429
    known = signed_out(claire)
    known.base = other.gateway.panel.url
    assert (await known.sign_in()).status == 303


def test_a_token_ends_and_nothing_is_one_of_somebody_without_a_password() -> None:
    somebody = Administrator(id="a", name="A", role=Role.ADMIN, one_time=False, created_at=NOW)
    kept = Credential(somebody, "argon2")
    token = device_token("a", "argon2", NOW)
    assert device_of(token, kept, NOW + DEVICE_LASTS - HOUR) == token.split(".")[0]
    assert device_of(token, kept, NOW - HOUR) is not None  # a clock that was set back
    assert device_of(token, kept, NOW + DEVICE_LASTS) is None
    assert device_of(token, Credential(somebody, "another"), NOW) is None
    assert device_of(token, Credential(somebody, ""), NOW) is None
    assert device_of(token, None, NOW) is None
    with pytest.raises(ValueError, match="no password"):
        device_token("a", "", NOW)


async def test_strangers_guess_at_one_name_seventeen_times_in_an_hour_and_then_four(
    store: Store,
) -> None:
    """However many they are and wherever they are: docs/panel.md tells these numbers."""
    failures, at, guesses = AttemptLimiter(store), NOW, list[datetime]()
    while at < NOW + timedelta(days=1):
        wait = await failures.try_now(of_name("Claire"), at)
        if not wait:
            guesses.append(at)
        at += wait
    by_hour = [sum(NOW + n * HOUR <= each < NOW + (n + 1) * HOUR for each in guesses)
               for n in range(24)]  # fmt: skip
    assert by_hour[0] == 17
    assert set(by_hour[1:]) == {4}


async def test_a_flood_of_strangers_is_bounded_and_leaves_the_turn_of_those_who_are_known() -> None:
    words, go = Passwords(), asyncio.Event()

    async def stranger() -> None:
        async with words.turn(is_known=False):
            await go.wait()

    waiting = [asyncio.create_task(stranger()) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyWaiting):
        await stranger()
    async with words.turn(is_known=True):
        assert not await words.is_right("", PASSWORD)
    go.set()
    await asyncio.gather(*waiting)
    await stranger()


async def test_a_stranger_too_many_is_told_to_come_again_and_a_known_browser_is_not(
    claire: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "MOST_WAITING", 0)
    told = await signed_out(claire, known=False).sign_in()
    assert (told.status, told.headers["Retry-After"]) == (503, "7")
    assert "Wait a few seconds" in told.plain
    assert (await signed_out(claire).sign_in()).status == 303


async def paused(claire: Manager) -> Page:
    return await signed_out(claire, known=False).sign_in()


async def test_the_command_ends_the_pause_of_a_name(
    claire: Manager, running_gateway: RunningGateway
) -> None:
    stranger = signed_out(claire, known=False)
    for _ in range(FREE + 2):
        await stranger.sign_in("a guess of mine")
    await guessed(running_gateway.gateway.store, "Claire", FREE + 4)
    assert (await paused(claire)).status == 429
    config, new = str(running_gateway.folder / "gateway.yaml"), "another battery staple"
    words = ["--config", config, "admin", "password", "claire"]
    done = await asyncio.to_thread(CliRunner().invoke, main, words, input=new)
    assert done.exit_code == 0, done.output
    assert (await signed_out(claire, known=False).sign_in(new)).status == 303


async def test_a_password_that_was_handed_over_lets_in_while_strangers_go_on_guessing(
    claire: Manager, denis: Manager, running_gateway: RunningGateway
) -> None:
    store = running_gateway.gateway.store
    await guessed(store, "Denis", FREE + 8)
    people = await claire.get("/people")
    found = await AdministratorStore(store).find("Denis")
    assert found is not None
    form = {"csrf": people.csrf, "id": found.administrator.id, "do": "password"}
    made = await claire.send("/people/act", form)
    password = made.text.split("data-secret>")[1].split("<")[0]
    assert await AttemptLimiter(store).try_now(of_name("Denis"), datetime.now(UTC)) == timedelta()
    await guessed(store, "Denis", FREE + 8)
    stranger = signed_out(denis, known=False)
    assert (await stranger.sign_in("a guess of mine")).status == 429
    assert (await stranger.sign_in(password)).headers["Location"] == "/account"
    assert not [each for each in stranger.cookies if "device" in each]
    chosen = {"new": PASSWORD, "again": PASSWORD}
    await stranger.fill("/account", chosen, "/account/password")
    await guessed(store, "Denis", FREE + 4)
    assert (await signed_out(stranger).sign_in()).status == 303


async def test_a_password_that_was_handed_over_lets_in_while_strangers_fill_the_turns(
    claire: Manager, running_gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    password, store = made_up(), AdministratorStore(running_gateway.gateway.store)
    await store.add("Denis", Role.ADMIN, one_time_digest(password), NOW, one_time=True)
    monkeypatch.setattr(passwords, "MOST_WAITING", 0)
    denis = claire.other("Denis")
    assert (await denis.sign_in("a guess of mine")).status == 503
    assert (await denis.sign_in(password)).headers["Location"] == "/account"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is worked out for passwords from now on; of a hash, all that its time depends on."""
    done = list[str]()
    verify, digest = PasswordHasher.verify, one_time_digest

    def verified(self: PasswordHasher, kept: str, password: str) -> bool:
        done.append(f"{extract_parameters(kept)}")
        return verify(self, kept, password)

    def digested(password: str) -> str:
        done.append("digest")
        return digest(password)

    monkeypatch.setattr(PasswordHasher, "verify", verified)
    monkeypatch.setattr(passwords, "one_time_digest", digested)
    return done


async def test_the_work_tells_nobody_who_has_a_one_time_password(
    claire: Manager, running_gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = running_gateway.gateway.store
    kept = {"Ann": await Passwords().hash(PASSWORD), "Bob": one_time_digest(made_up()), "Carl": ""}
    for name, password in kept.items():
        one_time = name != "Ann"
        await AdministratorStore(store).add(name, Role.ADMIN, password, NOW, one_time=one_time)
    done, before, meanwhile = counted(monkeypatch), list[list[str]](), list[list[str]]()
    for name in (*kept, "Nobody"):
        stranger = claire.other(name)
        assert (await stranger.sign_in("a guess of mine")).status == 401
        before.append(done.copy())
        await guessed(store, name, FREE + 4)
        done.clear()
        assert (await stranger.sign_in("a guess of mine")).status == 429
        meanwhile.append(done.copy())
        done.clear()
    hashed = f"{extract_parameters(kept['Ann'])}"
    assert before == [["digest", hashed]] * 4
    assert meanwhile == [["digest"]] * 4


def test_a_one_time_password_is_kept_as_a_digest_and_nothing_else_is_one() -> None:
    password = made_up()
    kept = one_time_digest(password)
    assert password not in kept
    assert is_one_time(kept, password)
    assert not is_one_time(kept, made_up())
    for other in ("", "x", password, kept.upper(), PasswordHasher().hash(password)):
        assert not is_one_time(other, password)


async def test_a_digest_lets_nobody_in_as_a_password() -> None:
    password = made_up()
    assert not await Passwords().is_right(one_time_digest(password), password)
    assert not is_one_time(one_time_digest(password), one_time_digest(password))


async def test_only_this_panels_pages_hold_the_cookie_and_no_script_does(claire: Manager) -> None:
    page = await signed_out(claire).sign_in()
    [said] = [each for each in page.headers.getall("Set-Cookie") if "-device-" in each]
    for each in ("HttpOnly", "Path=/", "SameSite=Strict", f"Max-Age={180 * 24 * 3600}"):
        assert each in said
    # without TLS, on this machine alone; tests/admin/test_guard.py looks behind TLS
    assert "Secure" not in said
    assert "Domain" not in said
