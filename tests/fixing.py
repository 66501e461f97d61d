"""What the tests of fixes share: a step of a plan, what comes of it, and what is in that."""

from nodetune import fixes
from nodetune.model import Fix, Step


def step_of(remedy, value, subjects=(), check="a-check", host="gpu01"):
    fix = Fix(remedy.kind, remedy.target, value, remedy.disruption, remedy.file, subjects, "", remedy.params)
    return Step(host, check, fix, "before", "after")


def built(facts, *steps):
    """The changes of all steps, with nothing left over."""
    groups, unfixable = fixes.groups(steps, facts)
    assert unfixable == []
    return [change for group in groups for change in group.changes]


def refused(facts, given):
    """Why a step cannot be built."""
    groups, ((_, why),) = fixes.groups([given], facts)
    assert groups == []
    return why


def of_kind(changes, kind):
    return [change for change in changes if change["change"] == kind]


def files(changes):
    return {change["path"]: change["content"] for change in of_kind(changes, "file")}
