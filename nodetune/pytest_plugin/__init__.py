"""The pytest plugin: with --nodetune, every check on every host is a test item.

pytest loads this file in every run wherever nodetune is installed: it imports nothing but pytest, and does nothing unless
asked.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nodetune.pytest_plugin.cases import Case
    from nodetune.pytest_plugin.items import HostItems

OPTIONS = {
    "inventory": "an inventory or hosts, as nodetune audit -i; without it testinfra's hosts, else this host",
    "limit": "only these hosts: Ansible patterns or a node set",
    "facts": "judge saved facts (file or folder) instead of connecting",
    "user": "log in as this user",
    "site": "your site's overrides, checks and waivers",
    "fail-on": "findings of this severity and above fail (default: medium); below they are expected failures",
}
SEVERAL = {
    "profile": "profile to judge by (may be repeated)",
    "select": "only these checks or areas (shell patterns; may be repeated)",
    "ignore": "not these checks or areas (may be repeated)",
}
FLAGS = {
    "become": "read as root, through sudo",
    "accept-new-host-keys": "trust the key of a host that is seen for the first time",
}
CASES = pytest.StashKey["list[Case]"]()
TAKEN = "nodetune_taken"
"""Where node ids stand that were given as arguments; an option, because those reach the workers of xdist."""

_ID = re.compile(r"(?:.*/)?(nodetune\[.*)")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nodetune", "checks of GPU servers")
    group.addoption("--nodetune", action="store_true", help="audit hosts: a test item for each check on each host")
    for name, told in OPTIONS.items():
        group.addoption(f"--nodetune-{name}", metavar=name.upper(), help=told)
    for name, told in SEVERAL.items():
        group.addoption(f"--nodetune-{name}", metavar=name.upper(), action="append", default=[], help=told)
    for name, told in FLAGS.items():
        group.addoption(f"--nodetune-{name}", action="store_true", help=told)


def option(config: pytest.Config, name: str) -> Any:
    """The value of --nodetune-NAME."""
    return config.getoption(f"nodetune_{name.replace('-', '_')}")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("nodetune"):
        given = [name for name in (*OPTIONS, *SEVERAL, *FLAGS) if option(config, name)]
        if given:
            raise pytest.UsageError(f"--nodetune-{given[0]} without --nodetune does nothing: add --nodetune")
        return
    from nodetune.pytest_plugin import cases

    for name, told in cases.markers():
        config.addinivalue_line("markers", f"{name}: {told}")
    _take_ids(config)


def _take_ids(config: pytest.Config) -> None:
    """Keep node ids of ours among the arguments: they are no files that pytest could find."""
    found = {arg: match[1] for arg in config.args if (match := _ID.fullmatch(arg))}
    if found:
        setattr(config.option, TAKEN, list(found.values()))
    if getattr(config.option, TAKEN, None):
        config.args = [arg for arg in config.args if arg not in found and (found or not _is_worker(config))]


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def cases_of(config: pytest.Config) -> list[Case]:
    """What the audit came to: audited once, by the process that the user started. Raises pytest.UsageError."""
    from nodetune.pytest_plugin import cases

    if CASES not in config.stash:
        handed = config.workerinput["nodetune"] if _is_worker(config) else None
        config.stash[CASES] = cases.unpacked(handed) if handed is not None else cases.audited(config)
    return config.stash[CASES]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """With xdist: audit before its workers, and threads, are started."""
    config = session.config
    if config.getoption("nodetune") and config.getoption("dist", "no") != "no" and not _is_worker(config):
        cases_of(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand a worker of xdist what is to be told, so that all of them tell the same, and no host is asked twice."""
    if node.config.getoption("nodetune"):
        from nodetune.pytest_plugin import cases

        node.workerinput["nodetune"] = cases.packed(cases_of(node.config))


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, None]:
    """What the session consists of: files, and hosts."""
    outcome = yield
    if isinstance(collector, pytest.Session) and collector.config.getoption("nodetune"):
        report = outcome.get_result()
        report.result = [*report.result, *_hosts(collector)]


def _hosts(session: pytest.Session) -> list[HostItems]:
    from nodetune.pytest_plugin import items

    return items.hosts(session, cases_of(session.config), getattr(session.config.option, TAKEN, ()))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """A host that was not reached is an error whatever -m and -k select: nothing is known of it."""
    kept = [item for item in items if getattr(item, "not_reached", False)]
    if kept:
        items[:] = [item for item in items if item not in kept]
    yield
    items += kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In a JUnit file a host is a class and a check a case of it."""
    if report.nodeid.startswith("nodetune["):
        from nodetune.pytest_plugin import items

        items.name_for_junit(report)
