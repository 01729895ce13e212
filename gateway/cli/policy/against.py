"""Looks at the configured practice system for what a policy opens there, and what it cannot."""

from dataclasses import replace
from pathlib import Path

from adapters.base import Trouble
from adapters.doctor import surveyor_of
from gateway.backend import unserved_rows
from gateway.cli.backend import bare_adapter
from gateway.cli.options import fail
from gateway.policy.reading.checked import Checked
from gateway.policy.reading.surveyed import notes_of
from gateway.settings import load_settings


async def against_backend(checked: Checked, config: Path | None) -> Checked:
    """The same with notes, and with the conditions that the practice system cannot serve.

    As it is where the policy cannot be used, for then nothing is open.
    """
    if checked.policy is None:
        return checked
    settings = load_settings(config)
    async with bare_adapter(settings, _ignored) as adapter:
        survey = surveyor_of(adapter)
        if survey is None:
            fail(f"the adapter {settings.backend.adapter} cannot tell what it leaves out")
        unserved = unserved_rows(adapter, checked.policy)
        errors = tuple(replace(each, code="unserved-condition") for each in unserved)
        notes = notes_of(checked.policy, await survey())
    return replace(checked, errors=errors, notes=notes, policy=None if errors else checked.policy)


def _ignored(trouble: Trouble) -> None:
    pass
