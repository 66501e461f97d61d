"""What the tests of fixes share: a finding with its fix, what comes of it, and what is in that."""

from nodetune.api.model import Finding, Fix
from nodetune.remediation import host_changes


def finding_of(remedy, value, subjects=(), check="a-check"):
    fix = Fix(remedy.kind, remedy.target, value, remedy.disruption, remedy.file, subjects, "", remedy.params)
    return Finding(check, "fail", "low", observed="before", fix=fix)


def built(facts, *findings):
    """The changes of all findings, with nothing left over."""
    planned, unfixable = host_changes.build(findings, facts)
    assert unfixable == []
    return [change for each in planned for change in each.changes]


def refused(facts, given):
    """Why a finding cannot be fixed."""
    planned, ((_, why),) = host_changes.build([given], facts)
    assert planned == []
    return why


def of_kind(changes, kind):
    return [change for change in changes if change["change"] == kind]


def files(changes):
    return {change["path"]: change["content"] for change in of_kind(changes, "file")}
