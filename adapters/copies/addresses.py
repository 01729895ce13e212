"""The addresses of files that are read by a copy."""

import codecs
import shutil
from collections.abc import Mapping, Sequence

from adapters.copies.access_tables import PROGRAMS

# The beginnings of the addresses, with an example of each.
EXAMPLES = {"access": "access:////srv/practice.mdb", "dbf": "dbf:////srv/practice"}


def is_copied(url: str) -> bool:
    """Returns whether the address is of files that are read by a copy."""
    return url.partition(":")[0] in EXAMPLES


def wrong_with_files(
    kind: str, path: str | None, host: str | None, options: Mapping[str, object]
) -> Sequence[str]:
    """Returns what keeps an address from being one of such files, as ends of sentences."""
    wrong = []
    if not path or host:
        what = "file" if kind == "access" else "folder of the tables"
        wrong.append(f"must name the {what}, such as {EXAMPLES[kind]}")
    odd = [name for name in options if name != "encoding"]
    wrong += [f"has an option {name!r} that is not known: encoding is" for name in odd]
    encoding = str(options.get("encoding", ""))
    if encoding and not _is_code_page(encoding):
        wrong.append(f"has an encoding {encoding!r} that is not known: write one such as cp850")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if kind == "access" and missing:
        program = f"the program {missing[0]}, which is not installed"
        wrong.append(f"needs {program}: apt-get install mdbtools")
    return wrong


def _is_code_page(name: str) -> bool:
    try:
        return codecs.lookup(name).name not in _NO_CODE_PAGES and bool("a".encode(name))
    except LookupError:
        return False


# Encodings of which no table of dBASE or FoxPro, and no file of Access 97, can be.
_NO_CODE_PAGES = frozenset({"utf-16", "utf-32", "utf-7", "idna", "punycode", "undefined"})
