"""An audit as JUnit XML: a suite for each host, a case for each check. It fails exactly if the exit code would be 1.

There is no standard; this is the subset that Jenkins' schema (xunit-plugin, junit-10.xsd), GitLab and junitparser all
read:
https://github.com/jenkinsci/xunit-plugin/tree/master/src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from nodetune.api.model import Check, Finding, HostResult, at_least
from nodetune.audit.summary import worded
from nodetune.report.areas import area

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that an XML 1.0 document must not contain, escaped or not (https://www.w3.org/TR/xml/#charsets)."""

ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
SPECIAL = re.compile("[" + "".join(ENTITIES) + "]")


def write(
    results: Iterable[HostResult],
    stream: TextIO,
    checks: Mapping[str, Check],
    fail_on: str = "medium",
    judged: str = "",
) -> None:
    """Write one host at a time. Findings below `fail_on` do not fail their case but appear in its output.

    `judged` are the options for profile and site file in proposed commands.
    """
    counted = at_least(fail_on)
    write_suites(stream, "audit", (_suite(result, checks, counted, judged) for result in results))


def write_suites(stream: TextIO, command: str, suites: Iterable[str]) -> None:
    """Write the document of a command."""
    stream.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="nodetune {command}">\n')
    stream.writelines(suites)
    stream.write("</testsuites>\n")


def _suite(result: HostResult, checks: Mapping[str, Check], counted: tuple[str, ...], judged: str) -> str:
    if result.state != "ok":
        message = f"{result.state}: {result.message}"
        cases = [case(result.host, "reached", told("error", result.state, message, message))]
    else:
        cases = [
            case(f"{result.host}.{area(found, checks)}", found.check, _outcome(found, counted, judged))
            for found in worded(result)
        ]
    return suite(result.host, cases, result.seconds)


def suite(host: str, cases: Sequence[str], seconds: float = 0.0) -> str:
    """Return the suite of a host."""
    count = {kind: sum(f"<{kind} " in case for case in cases) for kind in ("failure", "error", "skipped")}
    head = (
        f'<testsuite name="{escape(host)}" hostname="{escape(host)}" tests="{len(cases)}"'
        f' failures="{count["failure"]}" errors="{count["error"]}" skipped="{count["skipped"]}" time="{seconds:.3f}">\n'
    )
    return f"{head}{''.join(cases)}</testsuite>\n"


def case(class_name: str, name: str, inside: str) -> str:
    """Return a case that passes if there is nothing inside."""
    start = f'<testcase classname="{escape(class_name)}" name="{escape(name)}" time="0"'
    return f"{start}>{inside}</testcase>\n" if inside else f"{start}/>\n"


def _outcome(found: Finding, counted: tuple[str, ...], judged: str) -> str:
    if found.status == "fail":
        if found.severity in counted:
            return told("failure", found.severity, f"{found.title}: {found.observed}", _details(found, judged))
        return f"<system-out>{escape(_details(found, judged))}</system-out>"
    if found.status == "unknown" and found.severity in counted:
        return told("error", "unknown", found.reason, _details(found, judged))
    return "" if found.status == "pass" else told("skipped", found.status, f"{found.status}: {found.reason}", "")


def _details(found: Finding, judged: str) -> str:
    """Return the details of a case, complete without the rest of the report."""
    rows = {
        "severity": found.severity,
        "observed": found.observed,
        "wanted": found.wanted,
        "because": found.reason,
        "manual": " ".join(found.manual.split()),
        "next": f"nodetune explain {found.check} {judged}".rstrip(),
    }
    return "\n".join([found.title, *(f"{name}: {text}" for name, text in rows.items() if text)])


def told(kind: str, sort: str, message: str, text: str) -> str:
    """Return a failure, an error or what is skipped."""
    return f'<{kind} type="{escape(sort)}" message="{escape(message)}">{escape(text)}</{kind}>'


def escape(text: str) -> str:
    """Escape text for an element or an attribute; what XML cannot contain becomes its code point."""
    printable = NOT_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return SPECIAL.sub(lambda found: ENTITIES[found[0]], printable)
