"""pytest's options → an audit → the content of each item. Imported only in runs with --nodetune."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from nodetune.api.model import SEVERITIES, Check, Finding, HostResult, at_least
from nodetune.audit.summary import worded
from nodetune.pytest_plugin.options import FLAGS, OPTIONS, SEVERAL, option

CHECKS = Path(__file__).parents[1] / "checks"
REACHED = "reached"


@dataclass(frozen=True)
class Case:
    """One item, its outcome (passed, failed, error, skipped, xfailed) and its texts.

    An error is what makes an audit exit with 3: there is no basis for a verdict.
    """

    host: str
    name: str
    outcome: str
    text: str
    marks: tuple[str, ...] = ()


def markers() -> list[tuple[str, str]]:
    """Return every marker that items may have, with its description."""
    areas = sorted(
        each.name for each in CHECKS.iterdir() if each.is_dir() and each.name[0] not in "._" and each.name != "shared"
    )
    return [
        ("nodetune", "a check of nodetune on a host"),
        *((severity, f"nodetune: checks whose finding is of severity {severity}") for severity in reversed(SEVERITIES)),
        *((area, f"nodetune: checks of the area {area}") for area in (*areas, "fleet", "site")),
    ]


def packed(cases: Iterable[Case]) -> list[tuple[Any, ...]]:
    """Return plain values that a worker of xdist can receive."""
    return [astuple(case) for case in cases]


def unpacked(handed: Iterable[tuple[Any, ...]]) -> list[Case]:
    return [Case(*each) for each in handed]


def audited(config: pytest.Config) -> list[Case]:
    """Audit like `nodetune audit` with the same options. Raise pytest.UsageError for an invalid option."""
    import click

    from nodetune.foundation import UserError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries below: a user's -W error is meant for the user's code
        try:
            return _audited(_arguments(config))
        except click.ClickException as problem:
            _refuse(problem.format_message().replace("'--", "'--nodetune-"))
        except UserError as problem:
            _refuse(str(problem))
        except OSError as problem:
            _refuse(f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem))


def _refuse(message: str) -> NoReturn:
    raise pytest.UsageError(f"nodetune: {' '.join(message.split())}")


def _arguments(config: pytest.Config) -> list[str]:
    """Return the arguments of `nodetune audit` for those of pytest."""
    given = [f"--{name}={option(config, name)}" for name in OPTIONS if option(config, name) is not None]
    given += [f"--{name}={each}" for name in SEVERAL for text in option(config, name) for each in text.split(",")]
    given += [f"--{name}" for name in FLAGS if option(config, name)]
    if option(config, "inventory") is None and option(config, "facts") is None:
        given += _of_testinfra(config)
    return given


def _of_testinfra(config: pytest.Config) -> list[str]:
    """Use the hosts of testinfra that SSH reaches; molecule passes `--ansible-inventory`."""
    named, inventory = config.getoption("hosts", None), config.getoption("ansible_inventory", None)
    sudo = ["--become"] if config.getoption("sudo", None) else []
    if inventory:
        return [f"--inventory={inventory}", *sudo]
    if not named:
        return []
    found = [re.fullmatch(r"(?:(?:ssh|safe-ssh|paramiko)://([^?/]+)|(local)://)", each) for each in named.split(",")]
    if not all(found) or config.getoption("ssh_config", None) or config.getoption("ssh_identity_file", None):
        _refuse(f"cannot find out how to reach --hosts={named}: also give --nodetune-inventory")
    return ["--inventory=" + ",".join(each[1] or "localhost" for each in found if each), *sudo]


def _audited(arguments: list[str]) -> list[Case]:
    from nodetune.audit import run
    from nodetune.audit.request import AuditRequest
    from nodetune.cli import proposed_options, requests
    from nodetune.cli.commands import audit
    from nodetune.cli.main import known_settings
    from nodetune.foundation.stage_output import Silent

    with audit.command.make_context("nodetune audit", arguments, obj=known_settings) as context:
        request: AuditRequest = requests.partition(AuditRequest, context.params)["request"]
    selection = run.compared(request)
    results = run.run(request, selection, Silent())
    asked = proposed_options.text(request.connection, request.facts_path, selection)
    known = {check.id: check for check in selection.judged()}
    return list(told(results, Telling(known, request.fail_on, asked)))


def told(results: Iterable[HostResult], telling: Telling) -> Iterator[Case]:
    """Yield the cases of all hosts. The second host with the same name (facts of several days) is NAME#2."""
    seen: Counter[str] = Counter()
    for result in results:
        seen[result.host] += 1
        host = result.host if seen[result.host] == 1 else f"{result.host}#{seen[result.host]}"
        if result.state == "ok":
            yield from (telling.case(host, found) for found in worded(result))
        else:
            yield telling.unreached(host, result)


@dataclass(frozen=True)
class Telling:
    """Turns findings into cases: the checks by id, the least severity that fails, options of proposed commands."""

    checks: Mapping[str, Check]
    fail_on: str
    asked: str

    def unreached(self, host: str, result: HostResult) -> Case:
        from nodetune.foundation import text as plain_text

        return Case(host, REACHED, "error", plain_text.plain(f"{result.state}: {result.message}"))

    def case(self, host: str, found: Finding) -> Case:
        check = self.checks.get(found.check)
        marks = found.severity, (check.area if check else "") or "site"
        return Case(host, found.check, *self._outcome(found), marks)

    def _outcome(self, found: Finding) -> tuple[str, str]:
        counts = found.severity in at_least(self.fail_on)
        match found.status:
            case "pass":
                return "passed", ""
            case "fail" if counts:
                return "failed", self._text(found)
            case "fail":
                below = f"{found.severity}, below --nodetune-fail-on {self.fail_on}"
                return "xfailed", f"{below}: observed {found.observed}, wanted {found.wanted}"
            case "unknown" if counts:
                return "error", self._text(found)
            case "waived":
                return "xfailed", f"waived: {found.reason}"
        return "skipped", f"unknown: {found.reason}" if found.status == "unknown" else found.reason

    def _text(self, found: Finding) -> str:
        """Return the text of an item, complete without the rest of the report."""
        rows = {
            "observed": found.observed or ("unknown" if found.status == "unknown" else ""),
            "wanted": found.wanted,
            "because": found.reason,
            "why": self._why(found),
            "manual": " ".join(found.manual.split()),
            "next": self._next(found),
        }
        head = f"{found.severity}: {found.title}"
        return "\n".join([head, *(f"  {name:<8}  {text}" for name, text in rows.items() if text)])

    def _why(self, found: Finding) -> str:
        from nodetune.audit import explain

        check = self.checks.get(found.check)
        return explain.explain(check).sections.get("Why it matters", "") if check else ""

    def _next(self, found: Finding) -> str:
        if found.fix:
            return " ".join(part for part in ("nodetune plan", self.asked, f"-s {found.check}") if part)
        return f"nodetune explain {found.check}"
