"""The JUnit report is what consumers of JUnit read, and red exactly where the exit code is."""

import io
import xml.etree.ElementTree as ET
from pathlib import Path

import junitparser
import pytest

from nodetune.audit import summary
from nodetune.report import junit
from tests.support.reporting import CHECKS, HOSTILE, finding, hostile, judged, result

MACHINES = sorted((Path(__file__).parents[2] / "data" / "synthetic").glob("*.json"))


def written(results, fail_on="medium"):
    stream = io.StringIO()
    junit.write(results, stream, CHECKS, fail_on)
    return stream.getvalue()


def read(text):
    return junitparser.JUnitXml.fromstring(text.encode("utf-8"))


def kinds(suite):
    return {case.name: type(case.result[0]).__name__ if case.result else "" for case in suite}


def test_every_check_of_every_machine_is_a_counted_case():
    results = judged(*MACHINES)
    suites = {suite.name: suite for suite in read(written(results))}
    assert set(suites) == {each.host for each in results}
    for each in results:
        suite = suites[each.host]
        given = suite.tests, suite.failures, suite.errors, suite.skipped
        suite.update_statistics()
        assert given == (suite.tests, suite.failures, suite.errors, suite.skipped)
        assert suite.tests == len(each.findings)


@pytest.mark.parametrize("fail_on", ["info", "medium", "critical", "never"])
def test_it_is_red_exactly_where_the_exit_code_is(fail_on):
    found = list(judged(*MACHINES))
    assert len(found) == len(MACHINES) > 1
    for each in found:
        (suite,) = read(written([each], fail_on))
        code = summary.exit_code(summary.summarise([each]), fail_on)
        assert (suite.failures + suite.errors > 0) == (code != 0)


def test_each_verdict_has_its_own_case_that_says_what_to_do():
    found = [
        finding(observed="8 GiB", manual="Take it out\nof fstab."),
        finding("minor", "low"),
        finding("fine", status="pass"),
        finding("no-gpu", status="skip", reason="no GPU"),
        finding("signed", status="waived", reason="until 2030"),
        finding("closed", status="unknown", reason="permission denied"),
    ]
    (suite,) = read(written([result("a.example", *found)]))
    wanted = {
        "swap-on": "Failure",
        "minor": "SystemOut",
        "fine": "",
        "no-gpu": "Skipped",
        "signed": "Skipped",
        "closed": "Error",
    }
    told = {case.name: case for case in suite}
    seen = {name: kind or ("SystemOut" if told[name].system_out else "") for name, kind in kinds(suite).items()}
    assert seen == wanted
    assert told["swap-on"].result[0].message == "Swap is on: 8 GiB"
    assert "manual: Take it out of fstab." in told["swap-on"].result[0].text
    assert "nodetune explain swap-on" in told["swap-on"].result[0].text
    assert told["swap-on"].classname.startswith("a.example.")
    assert "until 2030" in told["signed"].result[0].message


def test_a_host_that_was_not_reached_is_an_error_of_its_own():
    (suite,) = read(written([result("a", state="refused", message="port 22")]))
    assert kinds(suite) == {"reached": "Error"}
    assert next(iter(suite)).result[0].message == "refused: port 22"


def test_hosts_cannot_write_xml():
    text = written(hostile())
    tree = ET.fromstring(text.encode("utf-8"))
    assert {each.tag for each in tree.iter()} <= {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "skipped",
        "system-out",
    }
    assert len(tree.findall("testsuite")) == 2 * len(HOSTILE)
    assert len(tree.findall("testsuite/testcase")) == 3 * len(HOSTILE)
    assert HOSTILE[2] in [suite.get("name") for suite in tree], "shown as it is, and nothing but text"
    assert not set(text) & set("\x1b\x07\x00\ud800\ufffe")
