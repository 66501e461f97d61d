"""The plugin's work in a pytest run with --nodetune."""

import re
from collections.abc import Generator
from typing import Any

import pytest

from nodetune.pytest_plugin import cases, items

_ID = re.compile(r"(?:[^:\[]*/)?(nodetune\[.*)")


class Auditing:
    """One run: audits once, in the process that the user started, and passes on the cases."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._known: list[cases.Case] | None = None
        ids = {arg: found[1] for arg in config.args if (found := _ID.fullmatch(arg))}
        self._ids = list(ids.values())
        config.args = [arg for arg in config.args if arg not in ids]  # pytest would look for files of these names
        for name, told in cases.markers():
            config.addinivalue_line("markers", f"{name}: {told}")

    def _cases(self) -> list[cases.Case]:
        """Return the cases. Raise pytest.UsageError."""
        if self._known is None:
            handed = getattr(self._config, "workerinput", {}).get("nodetune")
            self._known = cases.audited(self._config) if handed is None else cases.unpacked(handed)
        return self._known

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Audit before xdist starts threads and workers (a large audit uses several processes)."""
        if self._config.getoption("dist", "no") != "no":
            self._cases()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give the cases to a worker of xdist: all must collect the same items, and no host is probed twice."""
        node.workerinput["nodetune"] = cases.packed(self._cases())

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        """Add the hosts to the files of a session."""
        hosts = items.hosts(collector, self._cases(), self._ids) if isinstance(collector, pytest.Session) else []
        outcome = yield
        if hosts:
            report = outcome.get_result()
            report.result = [*report.result, *hosts]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Keep an unreachable host as an error, whatever -m and -k select."""
        kept = [item for item in items if getattr(item, "not_reached", False)]
        items[:] = [item for item in items if not getattr(item, "not_reached", False)]
        yield
        items += kept

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the host as class and the check as case in a JUnit file; pytest would join them."""
        host, ours, name = report.nodeid.removeprefix("nodetune[").rpartition("]::")
        if not ours or not report.nodeid.startswith("nodetune["):
            return
        for plugin in self._config.pluginmanager.get_plugins():
            if hasattr(plugin, "node_reporter"):  # pytest's writer, which has no public way to it but a fixture
                reporter = plugin.node_reporter(report)
                reporter.add_attribute("classname", f"nodetune.{host}")
                reporter.add_attribute("name", name)
