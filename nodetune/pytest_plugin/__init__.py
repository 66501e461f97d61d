"""The pytest plugin: with --nodetune, every check on every host is a test item.

pytest loads this file in every run if nodetune is installed, whatever its version: it imports only pytest
and the list of options, and without --nodetune it does nothing.
"""

import pytest

from nodetune.pytest_plugin.options import FLAGS, OPTIONS, SEVERAL, option


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nodetune", "checks of GPU servers")
    group.addoption("--nodetune", action="store_true", help="audit hosts: a test item for each check on each host")
    for name, told in OPTIONS.items():
        group.addoption(f"--nodetune-{name}", metavar=name.upper(), help=told)
    for name, told in SEVERAL.items():
        group.addoption(f"--nodetune-{name}", metavar=name.upper(), action="append", default=[], help=told)
    for name, told in FLAGS.items():
        group.addoption(f"--nodetune-{name}", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("nodetune"):
        from nodetune.pytest_plugin import session

        config.pluginmanager.register(session.Auditing(config))
        return
    given = [name for name in (*OPTIONS, *SEVERAL, *FLAGS) if option(config, name)]
    if given:
        raise pytest.UsageError(f"--nodetune-{given[0]} without --nodetune does nothing: add --nodetune")
