"""Packages of the RHEL family, through dnf 4's own library (python3-dnf).

The library belongs to the system's Python: a module in another Python must restart itself with it.
"""

import contextlib
import fnmatch

from ansible.module_utils.nodetune_host.problem import ChangeError

from .dnffiles import KEYS, OURS, SOURCES, pin_files, repository_files
from .dnfview import refresh, view
from .question import WRONG_KEY, Answer, judge, newest_common, no_package, no_version


def version(package):
    """Return epoch, version and release as in a lock: the epoch only if there is one."""
    epoch = f"{package.epoch}:" if package.epoch else ""
    return f"{epoch}{package.version}-{package.release}"


@contextlib.contextmanager
def asked(question):
    """Yield the answer to a question, and dnf's state with the transaction in it."""
    if not question.wanted:
        yield Answer([]), None
        return
    with view(question) as base:
        _exist(question, base)
        _restrict(question, base)
        _solve(question, base)
        answer = Answer(_steps(base.transaction))
        judge(question, answer)
        yield answer, base


def _matching(base, name):
    import dnf

    return dnf.subject.Subject(name).get_best_query(base.sack)


def _exist(question, base):
    """Raise ChangeError if a package, or its fixed version, is not available."""
    for name in question.wanted:
        had = [version(package) for package in sorted(_matching(base, name), reverse=True)]
        if not had:
            raise ChangeError(no_package(name))
        fixed = question.versions.get(name)
        if fixed and fixed not in had:
            raise ChangeError(no_version(name, fixed, list(dict.fromkeys(had))))


def available(names, base):
    """Return name → the available versions, newest first."""
    found = {name: sorted(base.sack.query().available().filter(name=name), reverse=True) for name in names}
    return {name: list(dict.fromkeys(version(each) for each in packages)) for name, packages in found.items()}


def _restrict(question, base):
    """Exclude every version except the fixed one, and other branches of the driver family."""
    query = base.sack.query().available()
    out = [each for each in query.filter(name=list(question.versions)) if version(each) != question.versions[each.name]]
    if question.branch and question.family:
        family = [each for each in query if any(fnmatch.fnmatch(each.name, form) for form in question.family)]
        branched = {each.name for each in family if question.fits_branch(version(each))}
        out += [each for each in family if each.name in branched and not question.fits_branch(version(each))]
        # what the site has comes from there, however new the host's own repositories are
        ours = {each.name for each in family if each.repoid.startswith(OURS) and question.fits_branch(version(each))}
        out += [each for each in family if each.name in ours and not each.repoid.startswith(OURS)]
    if out:
        base.sack.add_excludes(base.sack.query().filter(pkg=out))


def _solve(question, base):
    import dnf

    try:
        for name in question.wanted:
            base.install(name)
        _move(question, base)
        base.resolve(allow_erasing=True)
    except dnf.exceptions.Error as error:
        text = " ".join(line.strip(" -") for line in str(error).splitlines() if line.strip())
        raise ChangeError(f"these packages cannot be installed together: {text[:400]}") from None


def _move(question, base):
    """Move wanted packages and their dependencies to their version, up or down: dnf leaves installed ones alone.

    That is the fixed version; if versions are requested, the newest (of the branch, for the driver family).
    """
    there = {}
    for each in _below(question.wanted, base):
        if each.name in question.versions or question.asks_for(each.name):
            there.setdefault((each.name, each.arch), []).append(each)
    # kernels and the like, of which there may be several
    several = set(base.sack.query().installed().filter(provides=list(base.conf.installonlypkgs)))
    for (name, arch), installed in there.items():
        newest = max(installed)
        packages = base.sack.query().available().filter(name=name, arch=arch).latest().run()
        if len(installed) > 1 and newest not in several:
            _one_of(installed, packages, question.versions.get(name, ""), base)
            continue
        for package in packages:
            if package > newest:
                base.package_upgrade(package)
            elif package < newest:
                base.package_downgrade(package)


def _one_of(installed, packages, fixed, base):
    """Reinstall one of several versions of a package that an interrupted transaction left behind.

    It is unknown which one's files are there and which scripts ran.
    """
    import rpm

    if not packages:
        name, both = installed[0].name, " and ".join(version(each) for each in sorted(installed))
        missing = no_version(name, fixed, []) if fixed else no_package(name)
        raise ChangeError(f"{name} is installed in two versions, {both}, and cannot be reduced to one: {missing}")
    # else rpm does not reinstall the older one: "already installed"; dnf has no other way to say it
    base._rpm_probfilter.add(rpm.RPMPROB_FILTER_REPLACEPKG)  # noqa: SLF001
    for each in installed:
        if version(each) == version(packages[0]):
            base.reinstall(str(each))
        else:
            base.package_remove(each)
    if all(version(each) != version(packages[0]) for each in installed):
        base.package_install(packages[0])


def _steps(transaction):
    after = {each.name: version(each) for each in transaction.install_set}
    # of two versions at once, one of which is reinstalled, the step begins at the other
    gone = [each for each in sorted(transaction.remove_set) if version(each) != after.get(each.name)]
    before = {each.name: version(each) for each in gone}
    return [(name, before.get(name, ""), after.get(name, "")) for name in {**before, **after}]


def from_site(question, answer, base):
    """Return name → version of packages that the answer or the host takes from the site's repositories."""
    new = {each.name: version(each) for each in base.transaction.install_set if each.repoid.startswith(OURS)}
    gone = {name for name, _, _ in answer.steps}
    ours = {each.name + " " + version(each) for each in base.sack.query().available() if each.repoid.startswith(OURS)}
    held = {each.name: version(each) for each in _below(question.wanted, base) if each.name not in gone}
    return {**{name: found for name, found in held.items() if f"{name} {found}" in ours}, **new}


def _below(names, base):
    """Return installed dependencies of these installed packages."""
    host = base.sack.query().installed()
    found, todo = set(), list(host.filter(name=list(names)))
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            todo += host.filter(provides=each.requires) if each.requires else []
    return found


def common(question, base):
    """Return the newest upstream version of the branch in which all of `together` are available, or ""."""
    return newest_common(question, available(question.together, base))


def prepare():
    """Do nothing: the next transaction resolves double versions left by an interrupted one."""


def carry_out(question):
    """Install the wanted packages in one transaction."""
    import dnf

    with asked(question) as (answer, base):
        if not answer.steps:
            return
        try:
            base.download_packages(list(base.transaction.install_set))
            for package in base.transaction.install_set:
                _trust(base, package)
            base.do_transaction()
        except dnf.exceptions.Error as error:
            raise ChangeError(f"dnf failed: {' '.join(str(error).split())[:400]}") from None


def _trust(base, package):
    """Raise ChangeError if the package is not signed with its repository's key."""
    import dnf

    try:
        result, message = base.package_signature_check(package)
        if result == 1:
            base.package_import_key(package)
            result, message = base.package_signature_check(package)
    except dnf.exceptions.Error as error:
        result, message = 2, error
    if result:
        name = package.repoid.replace(OURS, "")
        raise ChangeError(f"repository {name}: {' '.join(str(message).split())[:300]}: {WRONG_KEY}")
