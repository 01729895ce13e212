"""Named expressions, and the clinic's clock, in the SQL or JMESPath of a mapping.

`expressions:` gives an expression a name, and perhaps parameters. Wherever a mapping has an
expression, `{name}` and `{name(a.CODE, 'X')}` stand for it. In SQL `:now` and `:today` stand for
the time on the clinic's clock, in JMESPath `:today` for the day. What is in quotes is left alone,
and so are other braces.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from adapters.documents.document import Document
from adapters.documents.problems import Misfit, Problem, did_you_mean, nearest
from adapters.mapping.conversion import DRAFT_FIELDS, DRAFT_KEYS
from adapters.mapping.paths import goes_on

# The names for the time on the clinic's clock.
NOW, TODAY = "now", "today"
CLOCK = (NOW, TODAY)
# Letters of the longest expression once all names in it are replaced, and how deep names may lead.
LONGEST, DEEPEST = 16 * 1024, 32

_QUOTED = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`"""
_signs = re.compile(rf"{_QUOTED}|[(),]|\{{", re.DOTALL).finditer
_uses = re.compile(r"\{\s*([^\W\d]\w*)\s*([}(])")
_use = _uses.match
_end = re.compile(r"\s*\}").match
_key = re.compile(r"([^\W\d]\w*)\s*(?:\(\s*([^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*)\s*\))?").fullmatch
# What needs no parentheses: a name, a number, a text, a name with a colon.
_single = re.compile(r"""[\w.]+|'[^'\\]*'|"[^"\\]*"|`[^`]*`|:\w+""").fullmatch
_JOIN = r"(?:natural |left |right |full |inner |cross |outer )*join\b"
_joins = re.compile(_JOIN, re.IGNORECASE).match
_dated = re.compile(rf'{_QUOTED}|(?<![:\w"])(:today)\b', re.DOTALL)
_clock_words = re.compile(r"(?<![:\w]):(?:now|today)\b").search
_clocked = re.compile(rf"{_QUOTED}|(?<![:\w\\]):(\w+)(?!:)", re.DOTALL)


class OnClock(str):
    """SQL in which `:now` or `:today` stands; `zone` is the clinic's."""

    __slots__ = ("zone",)
    zone: str

    def pieces(self) -> Iterator[tuple[str, str]]:
        """Yields the SQL before each such name and the name; "" for the name at the end."""
        start = 0
        for match in _clocked.finditer(self):
            if match[1] in CLOCK:
                yield self[start : match.start()], match[1]
                start = match.end()
        yield self[start:], ""


def on_clock(sql: str, zone: str) -> str:
    """Returns the SQL, as OnClock where it names the time. Raises Misfit for a name of no time."""
    if ":" not in sql:
        return sql
    names = {match[1] for match in _clocked.finditer(sql) if match[1]}
    for name in sorted(names.difference(CLOCK)):
        if name in DRAFT_FIELDS or name in DRAFT_KEYS:
            text = f":{name} stands only in what a booking writes; :now and :today stand here too"
            raise Misfit("unfilled", text)
        if near := nearest(name, CLOCK):
            raise Misfit("unfilled", f"nothing here is called :{name} (did you mean :{near}?)")
    if _clock_words(sql):
        _check_quotes(sql)
    if names.isdisjoint(CLOCK):
        return sql
    made = OnClock(sql)
    made.zone = zone
    return made


def dated(path: str, zone: str) -> str:
    """Returns a path into JSON in which `:today` is the clinic's day, a text."""
    return _dated.sub(lambda found: f"today('{zone}')" if found[1] else found[0], path)


class _Named(NamedTuple):
    """An expression by its name, with the key that it has in the file."""

    key: str
    parameters: tuple[str, ...]
    body: str


class _Circle(Exception):
    """Raised where an expression leads back to itself; the names on the way."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


@dataclass(slots=True)
class NamedExpressions:
    """The named expressions of a mapping, in SQL or JMESPath, and which of them are used.

    `problems` are those of the table itself; a name that is wrong there is left as it stands.
    """

    document: Document
    is_sql: bool = True
    problems: list[Problem] = field(default_factory=list)
    _named: dict[str, _Named] = field(default_factory=dict)
    _wrong: set[str] = field(default_factory=set)
    _used: set[str] = field(default_factory=set)
    # what each name became, by how deep it stands and by its values
    _made: dict[tuple[int, str, tuple[str, ...]], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        data = self.document.data
        table = data.get("expressions") if isinstance(data, dict) else None
        for key, body in (table if isinstance(table, dict) else {}).items():
            match = _key(key)
            if match is None:
                text = f"{key} is no name: write name, or name(parameter, parameter)"
                self._say(key, "bad-expression", text)
            elif match[1] in self._named:
                text = f"{match[1]} has its expression already, under {self._named[match[1]].key}"
                self._say(key, "bad-expression", text)
            else:
                parameters = tuple(re.findall(r"\w+", match[2] or ""))
                self._named[match[1]] = _Named(key, parameters, str(body))
                if not isinstance(body, str):  # which the models tell
                    self._wrong.add(match[1])
                elif not body.strip():
                    self._wrong.add(match[1])
                    self._say(key, "bad-expression", f"{key} is empty: write an expression")
        self._check()

    def _say(self, key: str, code: str, text: str) -> None:
        place = ("expressions", key)
        self.problems.append(self.document.problem(place, text, code, at_key=True))

    def _check(self) -> None:
        for name, named in self._named.items():
            if name in self._wrong:
                continue
            values = dict.fromkeys(named.parameters, "NULL")
            taken = set[str]()
            try:
                self._expanded(named.body, values, (name,), taken)
                for parameter in named.parameters:
                    if parameter not in taken:
                        text = f"{named.key}: {{{parameter}}} stands nowhere in it"
                        self._say(named.key, "bad-expression", text)
            except _Circle as circle:
                self._wrong.add(name)
                if name in circle.names:
                    text = f"{name} leads back to itself: {circle}"
                    self._say(named.key, "bad-expression", text)
            except Misfit as error:
                self._wrong.add(name)
                self._say(named.key, error.code, str(error))
        self._used.clear()

    def unused(self) -> list[Problem]:
        """Returns a warning for each expression that nothing used has named."""
        return [
            self.document.problem(
                ("expressions", named.key), f"nothing uses {{{name}}}", "unused-expression",
                at_key=True,
            )
            for name, named in self._named.items()
            if name not in self._used
        ]  # fmt: skip

    def expanded(self, text: str) -> str:
        """Returns an expression with every name replaced. Raises Misfit where that cannot be."""
        if "{" not in text:
            return text
        return self._expanded(text, {}, (), set())

    def _expanded(
        self, text: str, values: Mapping[str, str], way: tuple[str, ...], taken: set[str]
    ) -> str:
        """Returns it with the values of parameters; `way` are the names around it."""
        if self.is_sql and _uses.search(text):
            _check_quotes(text)
        made, start = list[str](), 0
        for sign in _signs(text):
            if sign.start() < start or sign[0] != "{" or not (use := _use(text, sign.start())):
                continue
            name, end = use[1], use.end()
            given: list[str] | None = None
            if use[2] == "(":
                given, end = _arguments(text, end, name)
            if name in values and given is None:
                value = values[name]
                taken.add(name)
            else:
                if any(one.count("{") > DEEPEST for one in given or ()):
                    raise Misfit("bad-expression", f"{{{name}}} has too many names in its values")
                inner = [self._expanded(one, values, way, taken) for one in given or ()]
                value = self._value(name, inner, values, way)
            bare = self._is_bare(value, text[: sign.start()].strip(), text[end:].strip())
            made += [text[start : sign.start()], value if bare else f"({value})"]
            start = end
            if sum(map(len, made)) > LONGEST:
                raise Misfit(
                    "bad-expression", f"{{{name}}} makes it longer than {LONGEST // 1024} KiB"
                )
        return "".join([*made, text[start:]])

    def _is_bare(self, value: str, before: str, behind: str) -> bool:
        """Returns whether what stands for a name needs no parentheses between those texts."""
        if not before and not behind:
            return True
        if not self.is_sql and behind.startswith("."):  # parentheses would end a projection
            return goes_on(dated(value, "UTC"), first=not before)
        return bool(_single(value) or _joins(" ".join(value.split())))

    def _value(
        self, name: str, given: Sequence[str], values: Mapping[str, str], way: tuple[str, ...]
    ) -> str:
        named = self._named.get(name)
        if named is None:
            near = did_you_mean(name, [*self._named, *values])
            raise Misfit("unfilled", f"expressions has no {name}{near}")
        if name in way:
            raise _Circle([*way[way.index(name) :], name])
        if len(way) > DEEPEST:
            raise Misfit("bad-expression", f"{{{name}}} leads through more than {DEEPEST} names")
        self._used.add(name)
        if name in self._wrong:
            return f"{{{name}}}"
        if len(given) != len(named.parameters):
            takes = f"takes {len(named.parameters)}" if named.parameters else "takes none"
            raise Misfit(
                "bad-expression", f"{{{name}}} has {len(given)} values; {named.key} {takes}"
            )
        use = (len(way), name, tuple(given))
        if use not in self._made:
            own = dict(zip(named.parameters, given, strict=True))
            self._made[use] = self._expanded(named.body, own, (*way, name), set()).strip()
        return self._made[use]


def _check_quotes(sql: str) -> None:
    """Raises Misfit where databases differ in what is in quotes, and so in what is a name."""
    if "\\'" in sql:
        raise Misfit(
            "bad-expression",
            "a backslash before a quote ends the text in some databases and not in others: write it"
            " as a function, such as CHR(92), beside {names}, :now and :today",
        )


def _arguments(text: str, start: int, name: str) -> tuple[list[str], int]:
    """Returns the values behind an opening parenthesis, and where the use ends."""
    depth, found, begin = 1, list[str](), start
    for sign in _signs(text, start):
        if sign[0] == "(":
            depth += 1
        elif sign[0] == ")":
            depth -= 1
            if depth == 0:
                found.append(text[begin : sign.start()].strip())
                if (end := _end(text, sign.end())) and (all(found) or len(found) == 1):
                    return list(filter(None, found)), end.end()
                break
        elif sign[0] == "," and depth == 1:
            found.append(text[begin : sign.start()].strip())
            begin = sign.end()
    raise Misfit("bad-expression", f"{{{name}(: write {{{name}(value, value)}}")
