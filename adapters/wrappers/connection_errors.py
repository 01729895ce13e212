"""Finds why a server cannot be reached, in an error or in the errors behind it."""

import errno
import re
import socket
import ssl

_ACCOUNT = "it refuses the account or its password"
_NO_DATABASE = "it has no database of that name"
# By the server's own code (PostgreSQL's letters, MySQL's and MariaDB's numbers) or the system's.
WORDS = {
    "28000": _ACCOUNT,
    "28P01": _ACCOUNT,
    "1045": _ACCOUNT,
    "1698": _ACCOUNT,
    "1044": "the account has no right to that database",
    "3D000": _NO_DATABASE,
    "1049": _NO_DATABASE,
    "ECONNREFUSED": "nothing listens there",
    "EHOSTUNREACH": "no way leads to that host",
    "ENETUNREACH": "no way leads to that host",
    "ETIMEDOUT": "there was no answer in time",
}
_NAMES = {number: name for name, number in vars(socket).items() if name.startswith("EAI_")}
_NUMBERS = re.compile(r"\[Errno (\d+)\]").findall


def reason(error: BaseException) -> str | None:
    """Returns words with a code behind them, such as `nothing listens there (ECONNREFUSED)`.

    They quote nothing that was sent or answered. Returns None where the errors don't say why.
    """
    behind: BaseException | None = error
    while behind is not None:
        if words := _words(behind):
            return words
        behind = behind.__cause__ or behind.__context__
    return None


def _words(error: BaseException) -> str | None:
    if isinstance(error, socket.gaierror):
        code = _NAMES.get(error.errno or 0, "gaierror")
        return f"its host name is not found ({code})"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted ({error.verify_message})"
    # a number first: drivers put a class of codes, which says less, beside it
    codes = [str(code) for code in (*error.args[:1], getattr(error, "sqlstate", None))]
    if isinstance(error, OSError):
        codes = _system_codes(error)
    return next((f"{WORDS[code]} ({code})" for code in codes if code in WORDS), None)


def _system_codes(error: OSError) -> list[str]:
    if isinstance(error, TimeoutError):
        return ["ETIMEDOUT"]
    # a host with several addresses gives one error, whose text quotes those of all
    numbers = [error.errno] if error.errno else map(int, _NUMBERS(str(error)))
    return [errno.errorcode.get(number, "") for number in numbers]
