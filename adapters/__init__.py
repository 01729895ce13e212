"""Opens the adapter of the clinic's practice system by its name.

A clinic's own adapter is named by its class, as `module:Class`.
"""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import cast

from adapters.base import Adapter, AdapterOptions
from adapters.documents.problems import did_you_mean

ADAPTERS = {
    "sql": "adapters.sql.adapter:SqlAdapter",
    "rest": "adapters.rest.adapter:RestAdapter",
}


async def completed(name: str, options: AdapterOptions) -> AdapterOptions:
    """Returns the options with what an adapter has to ask for before it is opened.

    Raises ValueError where there is no answer.
    """
    if name != "sql":
        return options
    spoken = import_module("adapters.sql.engines").spoken
    return replace(options, url=await asyncio.to_thread(spoken, options.url))


def open_adapter(name: str, options: AdapterOptions) -> Adapter:
    """Returns the adapter of that name; raises ValueError for a name that leads to none.

    Raises adapters.documents.problems.DocumentErrors where its mapping is wrong.
    """
    module_name, _, class_name = ADAPTERS.get(name, name).partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        known = ", ".join(ADAPTERS)
        raise ValueError(
            f"there is no adapter {name!r}: use one of {known}, or module:Class of your own"
        )
    try:
        module = import_module(module_name)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        why = f"imported: {reason}; mend what `python -c 'import {module_name}'` says"
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module_name}.".startswith(f"{missing}."):
            why = "found: install it where the gateway is, or name its folder in PYTHONPATH"
        raise ValueError(f"the adapter's module {module_name} cannot be {why}") from error
    return _maker(module, class_name)(options)


def _maker(module: ModuleType, name: str) -> Callable[[AdapterOptions], Adapter]:
    """Returns the class of that name; raises ValueError where it cannot be made of the options."""
    full = f"{module.__name__}:{name}"
    maker = getattr(module, name, None)
    if maker is None:
        classes = [member for member, _ in inspect.getmembers(module, inspect.isclass)]
        raise ValueError(
            f"the module {module.__name__} has no class {name}{did_you_mean(name, classes)};"
            " write module:Class in backend.adapter"
        )
    is_protocol = getattr(maker, "__dict__", {}).get("_is_protocol", False)
    if not inspect.isclass(maker) or inspect.isabstract(maker) or is_protocol:
        raise ValueError(
            f"{full} is no class that an adapter can be made of;"
            " write module:Class in backend.adapter"
        )
    try:
        inspect.signature(maker).bind(None)
    except (TypeError, ValueError) as error:  # ValueError: a class without a signature, such as int
        raise ValueError(
            f"the adapter {full} does not take the options: write its constructor as"
            " def __init__(self, options: AdapterOptions)"
        ) from error
    return cast(Callable[[AdapterOptions], Adapter], maker)
