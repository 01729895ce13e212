"""What a level sees is explained field by field, down to the line that decides."""

from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import CLIENT, CONSULTATION, GOVERNED
from gateway.policy.reading.document import parse_policy
from gateway.policy.reading.spots import spots_of
from gateway.policy.telling.wording import Reason, reasons
from tests.policies import moved

BASIC, STANDARD, FULL = LEVELS
MASKED = moved("clients.address", "never").replace(
    "[id, firstName, lastName]", "[id, firstName, lastName, {phone: last(2)}]"
)
ROWS = "consultations:\n  only: {BASIC: {status: [VALIDATED]}}\n"
TEXTS = MASKED.replace("consultations:\n", ROWS)


def explained(level: AccessLevel, resource: object = CLIENT) -> dict[str, Reason]:
    rules = parse_policy(TEXTS.encode(), "policies.yaml", lambda trouble: None).rules
    spots = spots_of(TEXTS.encode(), "policies.yaml")
    [wanted] = [each for each in GOVERNED if each is resource]
    return {each.path: each for each in reasons(wanted, rules[wanted.name], level, spots)}


def at(word: str, line_with: str) -> tuple[int, int]:
    [line] = [each for each in TEXTS.splitlines() if line_with in each]
    return TEXTS.splitlines().index(line) + 1, line.index(word) + 1


def test_each_field_names_the_level_that_decides_and_its_place() -> None:
    basic = explained(BASIC)
    assert basic["firstName"] == Reason(
        path="firstName",
        sight="whole",
        why="BASIC opens it",
        spot=at("firstName", "[id, firstName"),
    )
    assert basic["phone"] == Reason(
        path="phone",
        sight="last(2)",
        why="BASIC masks it; whole from STANDARD on",
        spot=at("phone", "{phone: last(2)}"),
    )
    assert basic["email"] == Reason(
        path="email", sight="hidden", why="STANDARD opens it", spot=at("email", "[phone, email")
    )
    assert basic["address"] == Reason(
        path="address", sight="hidden", why="no level opens it", spot=at("address", "address]")
    )
    assert explained(STANDARD)["phone"].why == "STANDARD opens it"
    assert explained(STANDARD)["phone"].spot == at("phone", "[phone, email")
    assert list(basic) == ["", *CLIENT.paths]


def test_the_records_that_exist_are_explained_too() -> None:
    assert explained(BASIC, CONSULTATION)[""] == Reason(
        path="",
        sight="{status: [VALIDATED]}",
        why="only these records exist at BASIC",
        spot=at("BASIC", "only: {BASIC"),
    )
    assert explained(FULL, CONSULTATION)[""] == Reason(
        path="", sight="all", why="every record exists at FULL", spot=None
    )
