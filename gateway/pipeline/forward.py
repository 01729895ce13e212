"""Asks the adapter for what an operation needs, and translates its errors for the partner."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from adapters import base
from adapters.base import Adapter, AdapterError, Draft, Filter, Only, Page, Query, Record
from gateway.booking.base import BookingRefused
from gateway.contract import errors
from gateway.contract.operations import Operation, Param
from gateway.pipeline.call import Others
from gateway.pipeline.cursor import CursorCipher
from gateway.pipeline.validate import CallReader, CallValues

TRANSLATED: Mapping[type[AdapterError], type[errors.GatewayError]] = {
    base.NotFound: errors.NotFound,
    base.SlotTaken: errors.TimeSlotConflict,
    base.PatientDeceased: errors.PatientIsDeceased,
    base.Rejected: errors.BackendUnusable,
    base.BackendUnavailable: errors.Unavailable,
    base.BackendTimeout: errors.BackendTooSlow,
    base.BackendNonsense: errors.BackendUnusable,
    base.OutcomeUnknown: errors.BookingUnknown,
}
# A list that partners get as a whole and that goes on after so many pages has no end.
MOST_PAGES = 100
Fields = frozenset[str]


def translated(error: AdapterError) -> errors.GatewayError:
    """Returns what the partner is told; an error that no adapter should raise is our fault."""
    if isinstance(error, base.BackendUnavailable):
        return errors.Unavailable(error.retry_after)
    for kind in type(error).__mro__:
        if kind in TRANSLATED:
            return TRANSLATED[kind]()
    return errors.InternalError()


def refusal(refused: BookingRefused) -> errors.GatewayError:
    """Returns the practice system's earlier refusal, to be told again."""
    return next(answer() for kind, answer in TRANSLATED.items() if kind.__name__ == refused.error)


def servable(operation: Operation, param: Param, adapter: Adapter) -> bool:
    """Returns whether the practice system can serve a filter."""
    if param.match is None:
        return True
    return adapter.filterable.get(operation.returns.name, frozenset()).issuperset(param.fields)


class RequestPlan:
    """What one operation needs on its way, made once: its `reader`, and the adapter's queries.

    `only` are the conditions under which records of the operation's resource exist for the key,
    `fields` what of them is looked at.
    """

    def __init__(self, operation: Operation, adapter: Adapter, cursors: CursorCipher) -> None:
        self.operation, self._adapter = operation, adapter
        self.reader = CallReader(
            operation, lambda param: servable(operation, param, adapter), cursors
        )
        self._resource = operation.returns.name
        params = operation.params
        self._id = next((param.name for param in params if param.where == "path"), "")
        self._within = next((param for param in params if param.within), None)
        self._filters = [param for param in params if param.match]
        self._others = [param.name for param in params if not param.match]
        self._fixed = tuple(Filter("equals", (name,), value) for name, value in operation.only)
        self._referring = [
            (param.name, refers)
            for param in self._filters
            if not param.within and (refers := operation.returns.at(param.fields[0]).refers)
        ]

    def one(
        self, values: CallValues, now: datetime, only: Only, fields: Fields
    ) -> Awaitable[Record]:
        public_id = values.params[self._id]
        return self._adapter.read_one(
            Query(resource=self._resource, now=now, id=public_id, only=only, fields=fields)
        )

    async def refers_to_nothing(
        self, values: CallValues, now: datetime, others: Callable[[str], Only]
    ) -> bool:
        """Returns whether a filter names a record that is hidden or not there: nothing fits it."""
        for name, resource in self._referring:
            only = others(resource)
            if only and name in values.params:
                public_id = values.params[name]
                query = Query(resource=resource, now=now, id=public_id, only=only, fields=Fields())
                try:
                    await self._adapter.read_one(query)
                except base.NotFound:
                    return True
        return False

    def many(
        self,
        values: CallValues,
        now: datetime,
        only: Only,
        fields: Fields,
        others: Others = None,
    ) -> Awaitable[Page]:
        params, within = values.params, self._within
        chosen = [
            Filter(str(param.match), param.fields, params[param.name])
            for param in self._filters
            if param.name in params
        ]
        query = Query(
            resource=self._resource,
            now=now,
            filters=(*chosen, *self._fixed),
            only=only,
            within=None if within is None else (str(within.within), params[within.name]),
            within_only=others(str(within.within)) if within is not None and others else (),
            values={name: params[name] for name in self._others if name in params},
            limit=values.limit,
            after=values.after,
            fields=fields,
        )
        return self._adapter.read_many(query)

    async def rest(
        self, page: Page, values: CallValues, now: datetime, only: Only, fields: Fields
    ) -> Page:
        """Returns this page and all that follow as one, for a list without pages for partners."""
        records, skipped = list(page.records), page.skipped
        for _ in range(MOST_PAGES):
            if page.after is None:
                return Page(records=records, skipped=skipped)
            values.after = page.after
            page = await self.many(values, now, only, fields)
            records += page.records
            skipped += page.skipped
        raise base.BackendNonsense(f"a whole list of {self._resource} does not end")


def draft_of(body: Mapping[str, Any], now: datetime, others: Others) -> Draft:
    """Returns the appointment that a checked body asks for."""
    return Draft(
        client_id=body["clientId"],
        patient_id=body["patientId"],
        vet_id=body["vetId"],
        scheduled_at=body["scheduledAt"],
        appointment_type_id=body["appointmentTypeId"],
        reason=body["reason"],
        is_urgent=body["isUrgent"],
        now=now,
        only={} if others is None else {name: others(name) for name in ("clients", "patients")},
    )
