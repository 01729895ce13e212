"""Statements that are only looked at: EXPLAIN is put before them on their way to the driver."""

from typing import Any

from sqlalchemy import Connection, CursorResult, Engine, Executable, UpdateBase, event

# An execution option: the words to put before the statement.
_EXPLAIN = "clinic_explain"


def explaining(engine: Engine) -> None:
    """From now on the engine's connections can explain."""
    event.listen(engine, "before_cursor_execute", _prefixed, retval=True)


def explain(
    connection: Connection, words: str, statement: Executable, parameters: dict[str, Any]
) -> CursorResult[Any, *tuple[Any, ...]]:
    """What the database answers to the statement with these words before it."""
    if isinstance(statement, UpdateBase):  # its result would be taken for that of a write
        return _explain_write(connection, words, statement, parameters)
    return connection.execute(statement, parameters, execution_options={_EXPLAIN: words})


def _explain_write(
    connection: Connection, words: str, statement: UpdateBase, parameters: dict[str, Any]
) -> CursorResult[Any, *tuple[Any, ...]]:
    compiled = statement.compile(connection, column_keys=list(parameters) or None)
    values = compiled.construct_params(parameters)
    names = compiled.positiontup if compiled.positional else None
    given = values if names is None else tuple(values[name] for name in names)
    return connection.exec_driver_sql(f"{words} {compiled}", given)


def _prefixed(*call: Any) -> tuple[str, Any]:
    _, _, statement, parameters, context, _ = call
    words = context is not None and context.execution_options.get(_EXPLAIN)
    return (f"{words} {statement}" if words else statement), parameters
