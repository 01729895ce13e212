"""Levels of access and resources, as the words of a command line."""

from typing import Any

import click

from gateway.cli.words import OneOf, one_at_a_time
from gateway.contract.access import AccessLevel
from gateway.contract.resources import GOVERNED

LEVEL = OneOf("LEVEL", AccessLevel, AccessLevel)
RESOURCE = OneOf("RESOURCE", [each.name for each in GOVERNED])


class Scope(click.ParamType[Any]):
    """`resource=LEVEL`."""

    name = "RESOURCE=LEVEL"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, AccessLevel]:
        one_at_a_time(self, value, param, ctx)
        resource, _, level = str(value).partition("=")
        if not resource or not level:
            self.fail(f"{value} must be RESOURCE=LEVEL, such as patients=STANDARD", param, ctx)
        return RESOURCE.convert(resource, param, ctx), LEVEL.convert(level, param, ctx)
