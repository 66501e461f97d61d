"""The pytest plugin: with --nodetune, every check on every host is a test item.

pytest loads this file in every run wherever nodetune is installed, whatever its own version: it imports nothing but pytest,
and without the option it does nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

OPTIONS = {
    "inventory": "an inventory or hosts, as nodetune audit -i; without it testinfra's hosts, else this host",
    "limit": "only these hosts: Ansible patterns or a node set",
    "facts": "judge saved facts (file or folder) instead of connecting",
    "user": "log in as this user",
    "fail-on": "findings of this severity and above fail (default: medium); those below are expected failures",
}
SEVERAL = {
    "site": "your site's overrides, checks and waivers: files, comma-separated (may be repeated), later ones win",
    "profile": "profiles to judge by, comma-separated (may be repeated)",
    "select": "only these checks or areas: shell patterns, comma-separated (may be repeated)",
    "ignore": "not these checks or areas (likewise)",
}
FLAGS = {
    "become": "read as root, through sudo",
    "accept-new-host-keys": "trust the key of a host that is seen for the first time",
}


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
    """Return the value of --nodetune-NAME."""
    return config.getoption(f"nodetune_{name.replace('-', '_')}")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("nodetune"):
        from nodetune.pytest_plugin import session

        config.pluginmanager.register(session.Auditing(config))
        return
    given = [name for name in (*OPTIONS, *SEVERAL, *FLAGS) if option(config, name)]
    if given:
        raise pytest.UsageError(f"--nodetune-{given[0]} without --nodetune does nothing: add --nodetune")
