"""The booking flow, drawn: who says what to whom, as an SVG without style or script of its own.

What is drawn stands once, as data; the same steps are told in words beside the drawing.
"""

from dataclasses import dataclass
from html import escape
from typing import Literal

from gateway.contract.operations import OPERATIONS
from gateway.web.markup import inline

_WIDTH = 400
_LEFT, _RIGHT = 48, 352
_TOP = 46
# How far apart what stands below each other is.
_LINE, _ARROW, _ROOM = 17, 10, 26

Kind = Literal["call", "answer", "trouble", "work"]


@dataclass(frozen=True, slots=True)
class Message:
    """One arrow with text above it; of the kind `work`, what the gateway does by itself."""

    kind: Kind
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the flow: what it is in words, and its messages."""

    words: str
    messages: tuple[Message, ...]


def _call(operation_id: str, *details: str) -> Message:
    [operation] = [each for each in OPERATIONS if each.id == operation_id]
    return Message("call", (f"{operation.method} {operation.path}", *details))


FLOW = (
    Step(
        "List the types of appointment: each has its duration.",
        (_call("list_appointment_types"), Message("answer", ("200 types",))),
    ),
    Step(
        "List the free times of a veterinarian on a day, for that type. No operation lists the"
        " veterinarians: the clinic hands their ids over.",
        (
            _call("list_available_slots", "vetId, date, appointmentTypeId"),
            Message("answer", ("200 free times",)),
        ),
    ),
    Step(
        "Book one of them: `scheduledAt` is its `startTime`, and the type goes along. Send an"
        " `Idempotency-Key` of your own with it, a new one for each booking.",
        (
            _call("create_appointment", "scheduledAt, Idempotency-Key"),
            Message("work", ("checks and writes,", "under a lock")),
            Message("answer", ("201 the appointment",)),
        ),
    ),
    Step(
        "A 409 says that somebody was quicker: load the free times again and pick another.",
        (Message("trouble", ("409 no longer free", "go back to the free times")),),
    ),
    Step(
        "A 504, or no answer at all, says that nobody knows yet: send the same booking with the"
        " same `Idempotency-Key` again. For 24 hours that gives the first outcome again, with"
        " `Idempotent-Replayed: true`, and nothing is booked twice.",
        (
            Message("trouble", ("504, or no answer",)),
            _call("create_appointment", "the same Idempotency-Key"),
            Message("answer", ("201 the same appointment", "Idempotent-Replayed: true")),
        ),
    ),
)


def steps() -> str:
    """The flow in words, as a list."""
    items = "".join(f"<li>{inline(step.words)}</li>\n" for step in FLOW)
    return f'<ol class="steps">\n{items}</ol>\n'


def drawing() -> str:
    """The flow as a drawing, named and described for who cannot see it."""
    parts, y = [], _TOP
    for number, step in enumerate(FLOW, 1):
        y += _ROOM
        parts.append(_number(number, y))
        for message in step.messages:
            drawn, y = _message(message, y)
            parts.append(drawn)
        y += _LINE
    return (
        f'<svg class="sequence" viewBox="0 0 {_WIDTH} {y + _ROOM}" role="img"'
        ' aria-labelledby="sequence-title sequence-about">\n'
        '<title id="sequence-title">How a booking goes</title>\n'
        '<desc id="sequence-about">Calls between your system and the clinic gateway, from top to'
        " bottom; the list beside it tells the same steps in words.</desc>\n"
        f"{_head(_LEFT, 'You', y)}{_head(_RIGHT, 'Gateway', y)}{''.join(parts)}</svg>\n"
    )


def _head(x: int, name: str, bottom: int) -> str:
    """A side, with its line of life."""
    return (
        f'<line class="life" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}"/>\n'
        f'<rect class="side" x="{x - 38}" y="10" width="76" height="32" rx="6"/>\n'
        f'<text class="name" x="{x}" y="31">{escape(name)}</text>\n'
    )


def _number(number: int, y: int) -> str:
    return (
        f'<circle class="dot" cx="{_LEFT}" cy="{y}" r="11"/>\n'
        f'<text class="number" x="{_LEFT}" y="{y + 4}">{number}</text>\n'
    )


def _message(message: Message, y: int) -> tuple[str, int]:
    """What is drawn below y, and where it ends."""
    if message.kind == "work":
        return _work(message, y)
    middle = (_LEFT + _RIGHT) // 2
    texts = []
    for at, line in enumerate(message.lines):
        y += _LINE
        shade = "said" if at == 0 else "aside"
        texts.append(f'<text class="{shade}" x="{middle}" y="{y - 9}">{escape(line)}</text>\n')
    y += 2
    return "".join(texts) + _arrow(message.kind, y), y + _ARROW + 6


def _arrow(kind: Kind, y: int) -> str:
    start, end = (_LEFT, _RIGHT) if kind == "call" else (_RIGHT, _LEFT)
    inwards = -9 if end > start else 9
    return (
        f'<line class="arrow {kind}" x1="{start}" y1="{y}" x2="{end}" y2="{y}"/>\n'
        f'<path class="tip {kind}" d="M{end} {y}l{inwards} -5v10z"/>\n'
    )


def _work(message: Message, y: int) -> tuple[str, int]:
    height = _LINE * len(message.lines) + 10
    box = f'<rect class="work" x="{_RIGHT - 130}" y="{y}" width="160" height="{height}" rx="6"/>\n'
    texts = [
        f'<text class="aside" x="{_RIGHT - 50}" y="{y + _LINE * (at + 1)}">{escape(line)}</text>\n'
        for at, line in enumerate(message.lines)
    ]
    return box + "".join(texts), y + height + 10
