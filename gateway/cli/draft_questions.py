"""Asks in the terminal about the guesses of a draft that the data do not prove."""

import click

from adapters.draft import Doubt
from gateway.cli.output import say

_KEYS = "y yes, n no, a yes to the rest of {}, q no to all that is left, or a name"


class Questions:
    """Asks about one guess after the other, on stderr; the answers are lines of stdin.

    `rest` are the resources whose guesses were all confirmed at once.
    """

    def __init__(self) -> None:
        self._rest = set[str]()
        self._is_over = False
        self._is_begun = False

    def __call__(self, question: Doubt) -> str:
        """Returns yes, no, or the name of the table or column that is right instead."""
        if self._is_over:
            return "no"
        if question.resource in self._rest:
            return "yes"
        self._show(question)
        while True:
            said = str(click.prompt("  right?", err=True, prompt_suffix=" ")).strip()
            answer = self._answer(question, said)
            if answer:
                return answer

    def _show(self, question: Doubt) -> None:
        if not self._is_begun:
            self._is_begun = True
            say(
                "What the data do not prove is asked; three rows are shown with each guess.",
                err=True,
            )
            say(f"Answer with {_KEYS.format('the resource')}.", err=True)
        place = ".".join(filter(None, (question.resource, question.field)))
        say("", f"{place}: {question.guess}", f"  likely: {question.why}", err=True)
        meanings = (f"{code or 'none'} is {value or '?'}" for code, value in question.codes.items())
        if question.codes:
            say(f"  {'; '.join(meanings)}", err=True)
        say(*(f"    {row}" for row in question.shown or ("no row has a value",)), err=True)
        if question.others:
            say(f"  or one of {', '.join(question.others)}", err=True)

    def _answer(self, question: Doubt, said: str) -> str:
        """Returns the answer; nothing where it is none, which is said."""
        word = said.lower()
        if word in ("y", "yes", "n", "no"):
            return "yes" if word in ("y", "yes") else "no"
        if word == "q":
            self._is_over = True
            return "no"
        if word == "a":
            self._rest.add(question.resource)
            return "yes"
        named = [name for name in question.others if name.lower() == word]
        if named:
            return named[0]
        known = f", or {', '.join(question.others)}" if question.others else ""
        say(f"  {said} is no answer: use y, n, a, q{known}", err=True)
        return ""
