"""Questions to a package manager, its answers, and which answers are refused. Pure."""

import fnmatch
import re
from dataclasses import dataclass, field

from ansible.module_utils.nodetune_host.problem import ChangeError

WRONG_KEY = "does key: in the site file have the key that signs this repository?"
WRONG_ADDRESS = "is its address in the site file correct, and can this host reach it?"


@dataclass
class Question:
    """`wanted` are names of packages; `versions` name → version of fixed ones (others: the newest).

    `branch` ("580", or a full version of the driver) holds packages whose name matches `family` at that branch.
    `together` are those of `wanted` that must have one upstream version; `replaces` patterns of removable packages.
    `repositories` is None to query the host as it is.
    """

    wanted: list
    versions: dict = field(default_factory=dict)
    repositories: list = None
    branch: str = ""
    family: list = ()
    together: list = ()
    replaces: list = ()

    def asks_for(self, name):
        """Return whether the newest version of a package is requested.

        This applies to wanted packages and to those of the driver family.
        """
        return bool(self.family) and (name in self.wanted or any(fnmatch.fnmatch(name, each) for each in self.family))

    def fits_branch(self, version):
        """Return whether an upstream version belongs to the requested branch."""
        return not self.branch or upstream(version) == self.branch or upstream(version).startswith(self.branch + ".")


class Answer:
    """A transaction: `steps` are (name, version before or "", version after or ""), sorted by name."""

    def __init__(self, steps):
        self.steps = sorted(steps)

    def lines(self):
        """Return one line for each step, for people and for diffs."""
        return [f"{name} {before or 'none'} -> {after or 'removed'}" for name, before, after in self.steps]

    def diff(self):
        """Return the steps as Ansible's before and after."""
        before = "".join(f"{name} {old}\n" for name, old, _ in self.steps if old)
        after = "".join(f"{name} {new}\n" for name, _, new in self.steps if new)
        return {"before_header": "packages", "after_header": "packages", "before": before, "after": after}


def upstream(version):
    """Return the upstream part of a package version: 3:580.159.04-1.el9 and 580.159.04-1ubuntu1 are both 580.159.04."""
    return re.sub(r"^\d+:", "", version).rsplit("-", 1)[0]


def disagreeing(names, versions, driver):
    """Describe `names` that `versions` (name → all of them) does not have exactly once as `driver`.

    `driver` is an upstream version.
    """
    there = {name: versions[name] for name in names if name in versions}
    other = [name for name, found in there.items() if [upstream(each) for each in found] != [driver]]
    missing = [f"no {name}" for name in names if name not in versions]
    return [f"{name} {' and '.join(there[name])}" for name in other] + missing


def judge(question, answer):
    """Raise ChangeError for versions other than fixed ones and for removals that are not allowed."""
    for name, _, after in answer.steps:
        fixed = question.versions.get(name)
        if after and fixed and after != fixed:
            raise ChangeError(no_version(name, fixed, [after]))
    removed = [name for name, _, after in answer.steps if not after]
    lost = [name for name in removed if not any(fnmatch.fnmatch(name, each) for each in question.replaces)]
    if lost:
        raise ChangeError(
            f"installing {', '.join(question.wanted)} would remove {', '.join(lost)}: remove the conflicting packages "
            "manually, or leave this part out"
        )


def no_version(name, version, had):
    """Return the message for a version that is not available, with those that are."""
    have = f"they have {', '.join(had[:5])}" if had else "they have no version of it"
    return f"version {version} of {name} is not in any repository: {have}; if the mirror has dropped it or does not have it yet, lock again (nodetune lock)"


def no_package(name):
    return f"{name} is not in any repository: add one that has it under provision: repositories: in the site file"


def newest_common(question, had):
    """Return the newest upstream version of the branch that all of `together` have, or "". `had`: name → versions."""
    kinds = [{upstream(each) for each in had.get(name, []) if question.fits_branch(each)} for name in question.together]
    first = had.get(question.together[0], []) if question.together else []
    return next((upstream(each) for each in first if all(upstream(each) in kind for kind in kinds)), "")


def resolved(manager, question):
    """Return ({name: version} from the site's repositories, the upstream version of `together`).

    Raise ChangeError.
    """
    with manager.asked(question) as (answer, context):
        versions = manager.from_site(question, answer, context)
        found = {name: versions[name] for name in question.together if name in versions}
        missing = [name for name in question.together if name not in found]
        if missing:
            raise ChangeError(_elsewhere(question, missing))
        kinds = {upstream(version) for version in found.values()}
        if len(kinds) > 1:
            raise ChangeError(_apart(question, found, manager.common(question, context)))
    return versions, "".join(kinds)


def _elsewhere(question, missing):
    where = ", ".join(each["name"] for each in question.repositories)
    return f"the site's repositories ({where}) have no {', '.join(missing)} of branch {question.branch}, which only this host's own repositories have: wait for the mirror, or add one that has them under provision: repositories: in the site file"


def _apart(question, found, common):
    newest = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    advice = (
        f"all of them have {common}: lock that one (nodetune lock --driver {common}), or wait for the mirror"
        if common
        else "no version is available for all of them: wait for the mirror, or add a repository that has them"
    )
    return f"the packages of the driver family are not available in one version of branch {question.branch} ({newest}): {advice}"
