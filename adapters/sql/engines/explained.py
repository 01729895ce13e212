"""Statements that are only looked at: EXPLAIN is put before them on their way to the driver."""

from typing import Any

from sqlalchemy import Connection, CursorResult, Engine, Executable, event

# An execution option: the words to put before the statement.
_EXPLAIN = "clinic_explain"


def explaining(engine: Engine) -> None:
    """From now on the engine's connections can explain."""
    event.listen(engine, "before_cursor_execute", _prefixed, retval=True)


def explain(
    connection: Connection, words: str, statement: Executable, parameters: dict[str, Any]
) -> CursorResult[Any, *tuple[Any, ...]]:
    """What the database answers to the statement with these words before it."""
    return connection.execute(statement, parameters, execution_options={_EXPLAIN: words})


def _prefixed(*call: Any) -> tuple[str, Any]:
    _, _, statement, parameters, context, _ = call
    words = context is not None and context.execution_options.get(_EXPLAIN)
    return (f"{words} {statement}" if words else statement), parameters
