"""What a changed policy may do at once, and what of it waits until somebody approves it."""

from dataclasses import replace

from gateway.policy.rows import NOTHING, Rows, Wanted
from gateway.policy.rules import WHOLE, ResourceRules, Rules, both, no_wider


def narrowed(running: Rules, new: Rules) -> Rules | None:
    """What may run without approval of the new rules, which show more somewhere.

    None where that is what runs already: the change does nothing but widen. Where the new rules
    have a condition on a field that the running ones do not show whole to that level, no record
    exists for it: which records met the condition would tell what the field says.
    """
    if no_wider(running, new):
        return None
    shared = tidy(both(running, new))
    return {name: _telling_nothing(each, running[name]) for name, each in shared.items()}


def _telling_nothing(shared: ResourceRules, running: ResourceRules) -> ResourceRules:
    return replace(
        shared,
        rows={
            level: Rows(
                {
                    name: test
                    if running.sight(name, level) is WHOLE
                    or test == running.rows_of(level).wanted.get(name)
                    else NOTHING
                    for name, test in each.wanted.items()
                }
            )
            for level, each in shared.rows.items()
        },
    )


def tidy(rules: Rules) -> Rules:
    """The same rules with conditions that say nothing twice."""
    return {name: _tidy_rows(each) for name, each in rules.items()}


def _tidy_rows(rules: ResourceRules) -> ResourceRules:
    rows = {
        level: Rows({name: _tidy(test) for name, test in each.wanted.items()})
        for level, each in rules.rows.items()
    }
    return replace(rules, rows=rows)


def _tidy(test: Wanted) -> Wanted:
    if test.allowed is not None:
        return Wanted(allowed=frozenset(filter(test.admits, test.allowed)))
    if test.is_empty:
        return NOTHING
    bounds = Wanted(low=test.low, high=test.high)
    return replace(test, barred=frozenset(filter(bounds.admits, test.barred)))
