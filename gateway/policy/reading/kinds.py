"""The kinds of problem that a policy file can have: a stable code, how grave it is, and help.

A code is for good: reports, suppressions and the pages on policies name it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An `error` keeps a policy from being used; a `warning` is worth a look; a `note` tells."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: `title` in a few words, `help` one sentence on what to know or to do."""

    title: str
    help: str
    severity: Severity = Severity.ERROR


_FILE = {
    "unreadable": Kind(
        "the file cannot be read",
        "Look whether the file is there under this name, and may be read by who runs the gateway.",
    ),
    "too-large": Kind(
        "the file is too large",
        "A policy is a few kilobytes of text: most likely this is another file.",
    ),
    "empty-file": Kind(
        "the file is empty",
        "Begin with a copy of the policy that comes with the gateway, and change that.",
    ),
    "not-utf8": Kind(
        "an old encoding",
        "Save the file as UTF-8; every editor offers that among its encodings.",
    ),
    "hidden-sign": Kind(
        "an invisible sign",
        "Such signs come with texts that are pasted from web pages and word processors.",
    ),
    "odd-quotes": Kind(
        "quotes of a word processor",
        "Edit the file with a plain text editor, which leaves quotes as they are typed.",
    ),
    "cut-off": Kind(
        "the end is missing",
        "The file was most likely not saved or copied as a whole: take it from a backup, or"
        " compare it with the policy that comes with the gateway.",
    ),
    "second-document": Kind(
        "a second file within the file",
        "A policy is one text: lines of dashes or dots have no place in it.",
    ),
}
_YAML = {
    "not-yaml": Kind(
        "not understood",
        "Compare the line with those above it: names, colons, brackets, commas and blanks matter.",
    ),
    "tab": Kind("a tab", "Blanks say what belongs to what; let your editor write them for tabs."),
    "indentation": Kind(
        "blanks at the beginning of a line",
        "Resources begin at the left edge; their lists stand below them, two blanks to the right.",
    ),
    "colon": Kind("a colon without a blank", "Behind a name stand a colon and a blank."),
    "colon-twice": Kind("a second colon", "One line says one thing; more stands in braces."),
    "no-colon": Kind("a missing colon", "Every name is followed by a colon and what it holds."),
    "comma": Kind("a comma too many", "Between two fields stands one comma."),
    "bracket": Kind("a bracket too many", "Each closing bracket belongs to one that opens."),
    "open-bracket": Kind("an open bracket", "A list begins with [ and ends with ]."),
    "open-quote": Kind("an open quote", "A quote that opens is closed by the same sign."),
    "text-behind": Kind(
        "text behind the end", "Behind a closing bracket or quote nothing follows in its line."
    ),
    "dash": Kind(
        "a dash out of place",
        "A list in lines has one field in each, behind a dash and a blank; [id, name] is the same.",
    ),
    "sign-at-start": Kind(
        "a sign at the beginning",
        "Signs such as > @ % ` have meanings of their own; a text that needs one stands in quotes.",
    ),
    "escape": Kind("a backslash", "No name in a policy has a backslash: take it out."),
    "half-letter": Kind("half of a letter", "Write the letter itself, not its number."),
    "odd-name": Kind("a name that is none", "A name is one plain word before a colon."),
    "doubled-name": Kind(
        "a name twice", "Of two that are alike nobody can tell which counts: keep one of them."
    ),
    "anchor": Kind(
        "an anchor or alias", "Copies by name hide what is open to whom: write every list out."
    ),
    "tag": Kind("a tag", "What begins with ! names a type, which nothing here needs."),
    "merge-key": Kind(
        "a merge key", "Copies by name hide what is open to whom: write every list out."
    ),
    "too-deep": Kind("nested too deep", "A policy has resources, in these lists, in these fields."),
    "unquoted-path": Kind(
        "a path without quotes", "Brackets begin a list, unless they stand in quotes."
    ),
}
_SHAPE = {
    "no-policy": Kind(
        "no policy at all", "Begin with a copy of the policy that comes with the gateway."
    ),
    "bad-version": Kind("the version", "version: 1 says by which rules the file is read."),
    "missing-resource": Kind(
        "a missing resource",
        "Every resource is decided on, so that nothing opens or vanishes by accident.",
    ),
    "unknown-resource": Kind(
        "an unknown resource", "The names of resources are those that partners use, in the plural."
    ),
    "whole-resource": Kind(
        "a resource that is always whole", "Types and free times have nothing to hide."
    ),
    "bad-resource": Kind(
        "a resource without lists", "Below its name stand BASIC, STANDARD and FULL, each a list."
    ),
    "list-for-group": Kind(
        "a list in place of a group", "Below a resource stand names of levels, each with its list."
    ),
    "missing-level": Kind("a missing level", "A level that adds nothing has an empty list: []."),
    "unknown-level": Kind(
        "an unknown level", "The levels are BASIC, STANDARD and FULL; never is for no key at all."
    ),
    "level-case": Kind(
        "capitals and small letters",
        "BASIC, STANDARD and FULL are capitals; never, only are not.",
    ),
    "bad-level": Kind("no list", "A list stands in brackets with commas, such as [id, name]."),
    "group-for-list": Kind(
        "a group in place of a list", "A list names fields; only masks and conditions have braces."
    ),
    "list-in-list": Kind("a list in a list", "Fields stand in one pair of brackets."),
    "only-in-list": Kind(
        "only behind a level", "Conditions stand under the resource, beside its levels."
    ),
    "only-outside": Kind(
        "only outside a resource",
        "Conditions are about one resource's fields, and stand there.",
    ),
}
_FIELDS = {
    "bad-field": Kind("no name of a field", "A list names fields by words."),
    "unknown-field": Kind(
        "an unknown field",
        "clinic-gateway policy show prints the fields of every resource.",
    ),
    "prefixed-field": Kind(
        "a field with its resource", "The resource is named once, above; fields go without it."
    ),
    "missing-comma": Kind("a missing comma", "Without commas several words are taken for one."),
    "list-of-objects": Kind(
        "a list of objects", "Each member of the inner objects is decided on by itself."
    ),
    "doubled-field": Kind(
        "a field twice", "A field stands where it opens; each higher level sees it as well."
    ),
    "missing-field": Kind(
        "a missing field",
        "Every field is decided on, so that nothing opens or vanishes by accident.",
    ),
}
_MASKS = {
    "mask-form": Kind("a mask written otherwise", "A mask is {phone: last(2)}, in a lower level."),
    "unknown-mask": Kind(
        "an unknown mask", "The masks are last(n), initial, city, domain, year and rounded(n)."
    ),
    "bad-mask": Kind(
        "a mask's number", "last takes 1 to 8, rounded 1 to 1,000,000; the others none."
    ),
    "unfit-mask": Kind("a mask that does not fit", "Each mask is for values of certain kinds."),
    "doubled-mask": Kind("a mask twice", "A field has one mask, from one level on."),
    "mask-under-never": Kind(
        "a mask under never", "never hides a field whole; a mask stands under a level."
    ),
    "mask-not-lower": Kind(
        "a mask that is never seen", "A mask is for levels below the one that opens the field."
    ),
}
_ROWS = {
    "bad-only": Kind(
        "conditions in no form", "only: {status: [ACTIVE]} shows those records, and no others."
    ),
    "bad-condition": Kind(
        "an unknown comparison", "A condition is a list of values, or not, min, above, max, below."
    ),
    "condition-on-hidden": Kind(
        "a condition on a hidden field",
        "Whoever sees that records are left out learns what the field says.",
    ),
    "condition-on-list": Kind(
        "a condition on a list", "Conditions are about fields that have one plain value."
    ),
    "empty-condition": Kind(
        "a condition that nothing meets", "To show no record, take the permission from the key."
    ),
    "unordered-field": Kind("a field without order", "min and max are for numbers and times."),
    "bad-value": Kind(
        "a value that the field never has", "Values are written as partners see them in answers."
    ),
    "yes-no": Kind("yes or no", "Truth values are written true and false."),
    "unquoted-text": Kind("a text without quotes", "A number in quotes is a text."),
    "narrower-level": Kind(
        "a higher level that sees less",
        "Of records too, each level sees what the one below does.",
    ),
}

_RISKS = {
    "personal-at-basic": Kind(
        "what reaches a person, at BASIC",
        "Every key sees BASIC: move the field to a higher level, or show it there under a mask.",
        Severity.WARNING,
    ),
    "opened-early": Kind(
        "a field at a lower level than usual",
        "Usual is what the policy that comes with the gateway says; a mask at the lower level would"
        " show less.",
        Severity.WARNING,
    ),
    "weak-mask": Kind(
        "a mask that hardly hides",
        "Who sees most of a value can guess the rest, or find it in a directory.",
        Severity.WARNING,
    ),
    "odd-comparison": Kind(
        "a text that looks like a comparison",
        "Without braces it is a value, which a record must have just so.",
        Severity.WARNING,
    ),
    "equal-levels": Kind(
        "two levels that see the same",
        "A key of the higher level gets nothing for it; maybe something was left out by mistake.",
        Severity.WARNING,
    ),
    "told-elsewhere": Kind(
        "hidden, and told elsewhere",
        "What other fields tell is hidden only together with them.",
        Severity.WARNING,
    ),
}
_CASES = {
    "failed-case": Kind(
        "a case that fails",
        "What the policy shows more waits until its cases pass: mend the policy, or the case where"
        " the change is meant.",
    ),
    "bad-cases": Kind(
        "cases that cannot be read",
        "What the policy shows more waits until its cases can be tried: mend them as it says.",
    ),
}
_BACKEND = {
    "unserved-condition": Kind(
        "a condition that the practice system cannot serve",
        "The gateway would not start: change the mapping as it says, or take the condition out.",
    ),
    "never-gets-out": Kind(
        "what no field is made of",
        "Only what the mapping makes a field of can be opened at all.",
        Severity.NOTE,
    ),
    "never-filled": Kind(
        "open, and never filled",
        "Partners get null there, until the mapping says where the field comes from.",
        Severity.NOTE,
    ),
}

KINDS: Mapping[str, Kind] = (
    _FILE | _YAML | _SHAPE | _FIELDS | _MASKS | _ROWS | _RISKS | _CASES | _BACKEND
)
