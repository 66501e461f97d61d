"""What is asked of a package manager, what it answers, and what of an answer is refused. Pure."""

import fnmatch
import re
from dataclasses import dataclass, field

from ansible.module_utils.nodetune_host.problem import ChangeError


@dataclass
class Question:
    """`wanted` are names of packages; `versions` name → version of those that are fixed (others: the newest there is).

    `branch` ("580", or a whole version of the driver) holds packages whose name fits `family` at that branch.
    `together` are those of `wanted` that must be of one upstream version; `replaces` patterns of what may be removed.
    `repositories` is None to ask the host as it is.
    """

    wanted: list
    versions: dict = field(default_factory=dict)
    repositories: list = None
    branch: str = ""
    family: list = ()
    together: list = ()
    replaces: list = ()

    def asks_for(self, name):
        """Return whether the newest version of a package is asked for.

        That is so for wanted packages, and for those of the driver's family.
        """
        return bool(self.family) and (name in self.wanted or any(fnmatch.fnmatch(name, each) for each in self.family))

    def fits_branch(self, version):
        """Return whether an upstream version is of the branch that is asked for."""
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
    """Return the maker's version of a package's: 3:580.159.04-1.el9 and 580.159.04-1ubuntu1 are both 580.159.04."""
    return re.sub(r"^\d+:", "", version).rsplit("-", 1)[0]


def disagreeing(names, versions, driver):
    """Describe `names` that `versions` (name → all of them) does not have exactly once as `driver`.

    `driver` is an upstream version.
    """
    there = {name: versions[name] for name in names if name in versions}
    other = [
        f"{name} {' and '.join(found)}"
        for name, found in there.items()
        if [upstream(each) for each in found] != [driver]
    ]
    return other + [f"no {name}" for name in names if name not in versions]


def judge(question, answer):
    """Raise ChangeError for what must not happen: other versions than fixed ones, and removals nobody allowed."""
    for name, _, after in answer.steps:
        fixed = question.versions.get(name)
        if after and fixed and after != fixed:
            raise ChangeError(no_version(name, fixed, [after]))
    removed = [name for name, _, after in answer.steps if not after]
    lost = [name for name in removed if not any(fnmatch.fnmatch(name, each) for each in question.replaces)]
    if lost:
        raise ChangeError(
            f"installing {', '.join(question.wanted)} would remove {', '.join(lost)}: "
            "remove what is in the way manually, or leave this part out"
        )


def no_version(name, version, had):
    """Return the message for a version that is not available, with those that are."""
    have = f"they have {', '.join(had[:5])}" if had else "they have none of it"
    return (
        f"version {version} of {name} is in none of the repositories: {have}; "
        "has the mirror dropped or not yet got it? Then lock again (nodetune lock)"
    )


def no_package(name):
    return (
        f"{name} is in none of the repositories: name one that has it under provision: repositories: in the site file"
    )


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
    return (
        f"the site's repositories ({where}) have no {', '.join(missing)} of branch {question.branch}, which only this host's "
        "own have: wait for the mirror, or name one that has them under provision: repositories: in the site file"
    )


def _apart(question, found, common):
    newest = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    advice = (
        f"all of them have {common}: lock that one (nodetune lock --driver {common}), or wait for the mirror"
        if common
        else "no version is there for all of them: wait for the mirror, or name a repository that has them"
    )
    return f"the packages of the driver family are not available in one version of branch {question.branch} ({newest}): {advice}"
