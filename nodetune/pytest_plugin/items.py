"""The collected items: a collector for each host with an item for each case."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import pytest

from nodetune.pytest_plugin.cases import REACHED, Case

MAX_NAME_LENGTH = 60
"""Letters of a host's name in the path that pytest looks for: the file system limits a name to 255 bytes."""


class CheckItem(pytest.Item):
    """One check on one host: reports what the audit found."""

    def __init__(self, *, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self._case = case
        self.not_reached = case.name == REACHED
        for mark in ("nodetune", *case.marks):
            self.add_marker(mark)
        if case.outcome == "skipped":
            self.add_marker(pytest.mark.skip(reason=case.text))

    def setup(self) -> None:
        """Make pytest report ERROR, not FAILED, if nothing is known."""
        if self._case.outcome == "error":
            pytest.fail(self._case.text, pytrace=False)

    def runtest(self) -> None:
        if self._case.outcome == "xfailed":
            pytest.xfail(self._case.text)  # does nothing with --runxfail
        if self._case.outcome in ("failed", "xfailed"):
            pytest.fail(self._case.text, pytrace=False)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return no traceback: pytest would make one for each expected failure."""
        expected = isinstance(excinfo.value, pytest.xfail.Exception)
        return self._case.text if expected else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int, str]:
        """Return the host (instead of a file), the line that pytest needs for a skipped item, and the title."""
        return self.path, 0, self.nodeid


class HostItems(pytest.Collector):
    """The items of one host."""

    def __init__(self, *, cases: Sequence[Case], **more: Any) -> None:
        super().__init__(**more)
        self._cases = cases

    def collect(self) -> Iterator[CheckItem]:
        for case in self._cases:
            yield CheckItem.from_parent(self, name=case.name, case=case)


def hosts(session: pytest.Session, cases: Iterable[Case], ids: Sequence[str]) -> list[HostItems]:
    """Return the collectors of a session, limited to `ids` if given. Raise pytest.UsageError for an unknown id."""
    chosen = [case for case in cases if not ids or any(_means(each, case) for each in ids)]
    for each in ids:
        if not any(_means(each, case) for case in chosen):
            raise pytest.UsageError(f"not found: {each} (all: pytest --nodetune --collect-only -q)")
    return [
        HostItems.from_parent(
            session,
            name=_id(host),
            nodeid=_id(host),
            path=session.path / _id(host[:MAX_NAME_LENGTH]),
            cases=list(group),
        )
        for host, group in groupby(chosen, key=lambda case: case.host)
    ]


def _id(host: str) -> str:
    return f"nodetune[{host}]"


def _means(wanted: str, case: Case) -> bool:
    """Return whether a node id belongs to the item or its host."""
    host = _id(case.host)
    return wanted in (host, f"{host}::{case.name}") or (case.name == REACHED and wanted.startswith(f"{host}::"))
