"""The clinic's practice system: everything an integrator needs to connect one.

The door of the family: `open_adapter` knows the adapters by name. A clinic's own adapter is named
by its class, as `module:Class`.
"""

from importlib import import_module

from adapters.base import Adapter, AdapterOptions

ADAPTERS = {"sql": "adapters.sql.adapter:SqlAdapter"}


def open_adapter(name: str, options: AdapterOptions) -> Adapter:
    """The adapter of that name; ValueError for a name that leads nowhere.

    What is wrong with its mapping comes out as adapters.document.DocumentErrors.
    """
    module_name, _, class_name = ADAPTERS.get(name, name).partition(":")
    try:
        maker = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        known = ", ".join(ADAPTERS)
        raise ValueError(
            f"there is no adapter {name!r}: use one of {known}, or module:Class of your own"
        ) from error
    adapter: Adapter = maker(options)
    return adapter
