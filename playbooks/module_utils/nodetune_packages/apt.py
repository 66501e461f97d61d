"""Debian's and Ubuntu's packages, through apt-get."""

import contextlib
import re
from dataclasses import replace

from ansible.module_utils.nodetune_host import command
from ansible.module_utils.nodetune_host.problem import ChangeError

from . import held
from .aptfiles import KEYS, SOURCES, pin_files, repository_files
from .aptview import SECONDS_TO_ASK, available, refresh, run, view, why
from .question import Answer, judge, newest_common, no_package, no_version

SECONDS_TO_INSTALL = 3600
"""DKMS builds the modules of every installed kernel: some minutes each."""
_OLD_CONFIG = ["--force-confdef", "--force-confold"]
"""Keep changed configuration files without asking."""
SOLVE = ["--no-install-recommends", "--allow-downgrades", "--fix-broken"]


@contextlib.contextmanager
def asked(question):
    """Yield the answer to a question, and the options of the query: with all repositories, and with only the site's."""
    with view(question) as seen:
        yield _answer(question, seen[0]), seen


def _answer(question, options):
    if not question.wanted:
        return Answer([])
    question = _moving(question)
    _exist(question, options)
    answer = Answer(_steps(run([*options, *SOLVE, "-s", "install", *_named(question)], SECONDS_TO_ASK)))
    judge(question, answer)
    return answer


def _moving(question):
    """Add dependencies to the wanted packages: apt does not update them if their old version suffices.

    Only those with a fixed version, and those of the driver family if versions are requested.
    """
    below = sorted(_below(question.wanted))
    more = [name for name in below if name in question.versions or question.asks_for(name)]
    return replace(question, wanted=[*question.wanted, *(name for name in more if name not in question.wanted)])


def _exist(question, options):
    """Raise ChangeError if a package, or its fixed version, is not available."""
    had = available(question.wanted, options)
    there = held.versions("apt", question.wanted)
    for name in question.wanted:
        if not had.get(name) and name not in there:
            raise ChangeError(no_package(name))
        fixed = question.versions.get(name)
        if fixed and fixed != there.get(name) and fixed not in had.get(name, []):
            raise ChangeError(no_version(name, fixed, had.get(name, [])))


def _named(question):
    return [f"{name}={question.versions[name]}" if name in question.versions else name for name in question.wanted]


def _steps(out):
    steps = {}
    for line in out.splitlines():
        inst = re.match(r"Inst (\S+) (?:\[(\S+)\] )?\((\S+) ", line)
        gone = re.match(r"(?:Remv|Purg) (\S+) \[(\S+)\]", line)
        if inst:
            steps[inst.group(1)] = (inst.group(2) or "", inst.group(3))
        elif gone:
            steps[gone.group(1)] = (gone.group(2), "")
    return [(name, before, after) for name, (before, after) in steps.items() if before != after]


def from_site(question, answer, seen):
    """Return name → version of packages that the answer or the host takes from the site's repositories."""
    every = {**_below(question.wanted), **{name: version for name, _, version in answer.steps if version}}
    had = available(sorted(every), seen[1])
    return {name: version for name, version in every.items() if version in had.get(name, [])}


def _below(names):
    """Return installed dependencies of these installed packages, including provided ones: name → version."""
    there = held.versions("apt")
    form = "${Package}|${Provides}|${Pre-Depends}, ${Depends}\\n"  # alternatives have the same sign: they come last
    rows = [line.split("|", 2) for line in command.attempt(["dpkg-query", "-W", "-f", form])[1].splitlines()]
    needs = {name: _names(needed) for name, _, needed in rows if name in there}
    gives = {}
    for name, provided, _ in rows:
        for each in {name, *_names(provided)} if name in there else ():
            gives.setdefault(each, set()).add(name)
    found, todo = set(), [name for name in names if name in there]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += {giver for each in needs[name] for giver in gives.get(each, ())}
    return {name: there[name] for name in found}


def _names(field):
    """Return the names in a field of relations: `a (>= 1), b:any | c` → a, b, c."""
    return re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)", field)


def common(question, seen):
    """Return the newest upstream version of the branch in which the site has all of `together`, or ""."""
    return newest_common(question, available(question.together, seen[1]))


def prepare():
    """Complete an interrupted transaction. If this fails, the next one tries again."""
    if command.attempt(["dpkg", "--audit"])[1].strip():
        tool = ["env", "DEBIAN_FRONTEND=noninteractive", "dpkg", *_OLD_CONFIG, "--configure", "-a"]
        command.attempt(tool, SECONDS_TO_INSTALL)


def carry_out(question):
    """Install the wanted packages in one transaction."""
    question = _moving(question)
    keep = [word for option in _OLD_CONFIG for word in ("-o", f"Dpkg::Options::={option}")]
    words = ["-y", "-q", "-o", "DPkg::Lock::Timeout=600", "-o", "Dpkg::Use-Pty=0", *keep, *SOLVE]
    try:
        run([*words, "install", *_named(question)], SECONDS_TO_INSTALL)
    except ChangeError as problem:
        if "Failed to fetch" not in str(problem):
            raise
        run(["update", "-q"], SECONDS_TO_ASK)  # the host's own lists are older than its mirror
        run([*words, "install", *_named(question)], SECONDS_TO_INSTALL)
