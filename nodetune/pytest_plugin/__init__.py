"""The pytest plugin: with --nodetune, every check on every host is a test item.

pytest loads this file in every run wherever nodetune is installed: it imports nothing but pytest, and does nothing unless
asked.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import pytest

OPTIONS = {
    "inventory": "an inventory or hosts, as nodetune audit -i; without it testinfra's hosts, else this host",
    "limit": "only these hosts: Ansible patterns or a node set",
    "facts": "judge saved facts (file or folder) instead of connecting",
    "user": "log in as this user",
    "site": "your site's overrides, checks and waivers",
    "fail-on": "findings of this severity and above fail (default: medium); those below are expected failures",
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
CASES = pytest.StashKey[Any]()
WANTED = pytest.StashKey[list[str]]()
"""The node ids among the arguments; empty: all."""

_ID = re.compile(r"(?:\.\./)*(nodetune\[.*)")


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
    from nodetune.pytest_plugin import cases, items

    for name, told in cases.markers():
        config.addinivalue_line("markers", f"{name}: {told}")
    config.pluginmanager.register(items.Naming(config))
    wanted = {arg: found[1] for arg in config.args if (found := _ID.fullmatch(arg))}
    config.stash[WANTED] = list(wanted.values())
    config.args = [arg for arg in config.args if arg not in wanted]  # pytest would look for files of these names


def _cases(config: pytest.Config) -> Any:
    """What the audit came to: made once, by the process that the user started. Raises pytest.UsageError."""
    from nodetune.pytest_plugin import cases

    if CASES not in config.stash:
        handed = getattr(config, "workerinput", {}).get("nodetune")
        config.stash[CASES] = cases.audited(config) if handed is None else cases.unpacked(handed)
    return config.stash[CASES]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """With xdist: audit before it starts threads and workers (a large audit parts in several processes)."""
    config = session.config
    if config.getoption("nodetune") and config.getoption("dist", "no") != "no":
        _cases(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand a worker of xdist what to tell: all must have the same items, and no host is asked twice."""
    if node.config.getoption("nodetune"):
        from nodetune.pytest_plugin import cases

        node.workerinput["nodetune"] = cases.packed(_cases(node.config))


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, None]:
    """A session consists of files, and of hosts."""
    outcome = yield
    if isinstance(collector, pytest.Session) and collector.config.getoption("nodetune"):
        from nodetune.pytest_plugin import items

        report = outcome.get_result()
        hosts = items.hosts(collector, _cases(collector.config), collector.config.stash[WANTED])
        report.result = [*report.result, *hosts]


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """A host that was not reached is an error whatever -m and -k select: nothing is known of it."""
    kept = [item for item in items if getattr(item, "not_reached", False)]
    if kept:
        items[:] = [item for item in items if item not in kept]
    yield
    items += kept
