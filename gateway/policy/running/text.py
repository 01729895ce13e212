"""Rules as the text of a policy file: written for the store, and read back from it.

Equal rules give equal text, byte for byte. The loader reads the text back to equal rules wherever a
policy file can say them. What two policies both show may need more than that: two masks in one
field, a field that is hidden again at a higher level (`hidden` stands for its mask), a condition on
a hidden field, or a condition that no record meets (`[]`).

A policy that ran was checked when it was taken, but the contract may have changed since. So reading
refuses nothing for what it says, and never opens more than before.
"""

from collections.abc import Iterator
from hashlib import sha256

from adapters.documents.document import parse_document
from adapters.documents.problems import DocumentErrors, Problem
from gateway.contract.access import LEVELS
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.policy import HIDDEN, WHOLE, ResourceRules, Rules, Version
from gateway.policy.reading.document import Reading
from gateway.policy.rows import conditions_in_file, path_in_list

# Bytes: what two files of the largest size both say may take more room than either.
LARGEST = 1024 * 1024


def write_rules(rules: Rules) -> str:
    """Returns the text of a policy file, resources and fields in the contract's order."""
    return "version: 1\n" + "".join(
        line for resource in GOVERNED for line in _written(resource, rules[resource.name])
    )


def _written(resource: Resource, rules: ResourceRules) -> Iterator[str]:
    yield f"{resource.name}:\n"
    for number, level in enumerate(LEVELS):
        entries = []
        for path in resource.paths:
            before, sight = (HIDDEN, *rules.fields[path])[number : number + 2]
            if sight != before:  # the field opens, or changes its mask
                mask = "" if sight is WHOLE else f": {sight}"
                entries.append(f"{path_in_list(path)}{mask}")
        yield f"  {level}: [{', '.join(entries)}]\n"
    never = [path_in_list(path) for path in resource.paths if rules.opened_at(path) is None]
    yield f"  never: [{', '.join(never)}]\n"
    rows = [rules.rows_of(level) for level in LEVELS]
    if any(rows) and rows[0] == rows[1] == rows[2]:
        yield f"  only: {conditions_in_file(resource, rows[0])}\n"
    elif any(rows):
        yield "  only:\n"
        for level, own in zip(LEVELS, rows, strict=True):
            if own:
                yield f"    {level}: {conditions_in_file(resource, own)}\n"


def read_version(version: Version) -> Rules:
    """Returns the rules of a policy that ran; raises DocumentErrors for a damaged text, or no YAML.

    The beginning of a text may be a policy that shows more than the whole text.
    """
    if sha256(version.content).hexdigest() != version.hash:
        raise DocumentErrors([Problem(version.file, 0, 0, "its text has another hash")])
    return Reading(parse_document(version.content, "", LARGEST, flawed=True)).rules
