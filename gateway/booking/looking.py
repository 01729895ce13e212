"""Looks an attempt of unknown outcome up in the practice system."""

from datetime import timedelta

from adapters.base import Adapter, AdapterError, Draft, OutcomeUnknown, Record
from gateway.booking.row import Outcome, Row
from gateway.booking.rows import Rows

# A clock that was set back or forth by an hour hides no booking that was made in between.
SLACK = timedelta(hours=1, minutes=5)


class Lost(Exception):
    """The row is another claim's by now, or gone.

    `outcome` is what its first claim knows to have happened: None where it has sent nothing.
    """

    def __init__(self, outcome: Outcome = None) -> None:
        super().__init__()
        self.outcome = outcome


async def look(
    rows: Rows, adapter: Adapter, draft: Draft, row: Row, *, told: bool
) -> Record | None:
    """What the attempt left behind, and the row now holds; None where it left nothing so far.

    An appointment that another row holds is somebody else's. OutcomeUnknown where the practice
    system can't be asked; StoreError; Lost.
    """
    try:
        found = await adapter.find_appointments(draft, row.created_at - SLACK)
    except AdapterError as error:
        raise OutcomeUnknown("the practice system can't be asked") from error
    except Exception as error:
        raise OutcomeUnknown("the adapter failed while it looked a booking up") from error
    for record in found:
        held = await rows.hold(row, record, told=told)
        if held is None:
            raise Lost
        if held:
            return record
    return None
