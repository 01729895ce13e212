"""What partners are told of the interface in sentences, for its description and its page.

The paragraphs, and lists with a dash, are the two forms that such a text takes.
"""

from collections.abc import Mapping

from gateway.contract.access import LEVEL_SUMMARIES

INTRODUCTION = "Reads a veterinary clinic's records and books appointments."

AUTHENTICATION = """\
Every call carries an API key in the header `X-API-Key`. The key decides which operations are
reachable (its permissions, see `x-permission`), how many calls an hour are allowed, and how much
of each record is visible: its access level, which may differ from resource to resource."""

_LEVELS = "\n".join(f"- `{level}`: {text}" for level, text in LEVEL_SUMMARIES.items())

VISIBLE = """\
A field that the level does not open is absent. A field that is open and has no value is `null`.
`X-Access-Level` says which level was applied. Asked for with a key, this document shows the
interface as that key sees it."""

VALUES = """\
Times go out in UTC with whole seconds (`2026-03-01T09:00:00Z`); times that come in may have any
offset, but need one. Days are the clinic's local days. Money is a decimal string with two places.
Identifiers are UUIDs in lower case."""

BOOKING = """\
To book: list the appointment types, list the available slots of a veterinarian on a day, create
the appointment at one of them. A 409 says that the time is not, or no longer, one of the free
slots: load them again and pick another."""

ABOUT = "\n\n".join((INTRODUCTION, AUTHENTICATION, _LEVELS, VISIBLE, VALUES, BOOKING)) + "\n"

# What to do about an answer that is none of the good ones.
REMEDIES: Mapping[int, str] = {
    400: "Mend what `errors` names; the same request is refused again.",
    401: "Send the key that the clinic gave you, or ask for a new one.",
    403: "Ask the clinic for the permission.",
    404: "Look whether the identifier is still right.",
    405: "Use one of the methods that `Allow` names.",
    408: "Send the whole body at once.",
    409: "Load the free slots again and pick another time.",
    413: "Send less.",
    415: "Send JSON, not compressed, and say so in `Content-Type`.",
    417: "Leave the `Expect` header out.",
    429: "Wait the seconds of `Retry-After`.",
    431: "Send fewer or shorter headers.",
    500: "Try again later; tell the clinic the `X-Request-Id`.",
    502: "Try again later; tell the clinic the `X-Request-Id`.",
    503: "Wait the seconds of `Retry-After`, then ask again.",
    504: "Ask again; a booking with the same `Idempotency-Key`.",
}
