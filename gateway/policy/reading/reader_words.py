"""What the reader of files says, in words for people who know no YAML, about a policy."""

from collections.abc import Mapping
from dataclasses import replace

from adapters.documents.problems import Problem

_WORDS: Mapping[str, str] = {
    "anchor": "no word begins with * or & (an alias, an anchor): write each field by its name",
    "tag": "no word begins with ! (a tag): take it out; values to leave out are written"
    " {not: [A, B]}",
    "merge-key": "merge keys (<<) are not allowed; write each list out",
    "too-deep": "nested too deep: brackets within brackets, of which one pair is enough",
    "sign-at-start": "no word begins with this sign; a comparison is written {min: 1}, {above: 1},"
    " {max: 1} or {below: 1}",
    "text-behind": "nothing can stand behind the bracket or quote that closes: take it out, or"
    " begin a new line",
    "odd-name": "a name is one plain word, without brackets",
    "no-colon": "this line has no colon: write NAME: [field, field], or # before a note",
    "colon": "a colon needs a blank behind it: write NAME: [field, field]",
    "colon-twice": "a second colon stands in one line: a mask is written {phone: last(2)}, and only"
    " has a line of its own: only: {status: [ACTIVE]}",
    "second-document": "three dashes or dots end the file before its end; take that line out",
    "cut-off": "the file ends in the middle of this line: its end seems to be missing",
    "not-utf8": "the letter here is in an old encoding; save the file as UTF-8",
    "hidden-sign": "a sign stands here that no editor shows; write the line anew",
    "not-yaml": "nobody can tell what is meant here; write the line anew, like those above it",
    "dash": "each field of a list in lines stands in a line of its own, behind a dash and a blank,"
    " all equally far to the right",
}


def in_own_words(problem: Problem) -> Problem:
    """The same problem, where the reader's words are about YAML, in those of this file."""
    return replace(problem, text=_WORDS.get(problem.code, problem.text))
