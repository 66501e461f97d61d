"""The report stays readable, whatever the hosts say and however many they are."""

import datetime
import io
import json
import os
from unittest import mock

import pytest

from nodetune.api.model import Finding, Fix, HostResult
from nodetune.audit import document as audit_document
from nodetune.audit import summary
from nodetune.facts import document
from nodetune.foundation import json_document, nodeset
from nodetune.foundation import text as plain_text
from nodetune.report.sections import CommandOptions
from nodetune.report.text import full
from tests.support import reporting


def finding(check="swap-on", severity="high", status="fail", **more):
    fields = {"title": "Swap is on", "observed": "8 GiB", "wanted": "none", **more}
    return Finding(check, status, severity, **fields)


def result(host, *findings, state="ok", message=""):
    facts = document.from_data({"host": host, "facts": {}})
    return HostResult(host, state, message, facts if state == "ok" else None, tuple(findings), "training", "")


def printed(results, width=100, by_host=False):
    stream = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS=str(width)):
        full.write(results, stream, CommandOptions("-i prod"), {}, by_host)
    return stream.getvalue()


def test_a_thousand_hosts_with_one_fault_make_one_paragraph():
    shown = printed([result(f"gpu{number:04}", finding()) for number in range(1000)])
    assert "gpu[0000-0999]" in shown
    assert len(shown.splitlines()) < 25, "with the ten worst hosts"


def test_a_thousand_values_do_not_make_a_thousand_lines():
    shown = printed([result(f"gpu{number:04}", finding(observed=f"{number} MiB")) for number in range(1000)])
    assert "… and other values on 994 hosts" in shown
    assert len(shown.splitlines()) < 40


@pytest.mark.parametrize("width", [80, 100, 150])
def test_no_line_is_wider_than_the_terminal(width):
    results = [result(f"rack{number}-gpu{number * 7 % 13}", finding(observed="x " * 200)) for number in range(50)]
    assert max(map(len, printed(results, width).splitlines())) <= width


@pytest.mark.parametrize("width", [80, 140])
def test_the_wanted_value_begins_a_line_unless_it_fits(width):
    shown = printed([result("a", finding(observed="x" * 60, wanted="all links up"))], width)
    assert ("   wanted all links up" in shown) == (width == 140)
    assert ("          wanted   all links up\n" in shown) == (width == 80)


def test_the_worst_comes_first():
    shown = printed([result("a", finding("minor", "low"), finding("major", "critical"), finding("middle", "medium"))])
    assert shown.index("major") < shown.index("middle") < shown.index("minor")


@pytest.mark.parametrize(
    ("today", "status", "told"),
    [("2026-12-01", "pass", False), ("2027-06-01", "pass", True), ("2027-06-01", "skip", False)],
)
def test_an_aged_table_of_driver_versions_is_told(today, status, told):
    stream = io.StringIO()
    results = [result("a", finding("gpu-driver-vulnerable", status=status))]
    day = datetime.date.fromisoformat(today)
    full.write(results, stream, CommandOptions(), {}, today=lambda: day)
    assert ("by a table of 2026-09-30" in stream.getvalue()) == told


def test_each_finding_says_what_to_do():
    fixable = finding(fix=Fix("sysctl", "vm.swappiness", 10, "none", "/etc/x"))
    manual = finding("edac", manual="Replace the DIMM.")
    shown = printed([result("a", fixable, manual)])
    assert "do       vm.swappiness = 10 (disruption: none)" in shown
    assert "to do     nodetune apply -i prod\n" in shown
    assert "Replace the DIMM." in shown


def test_nothing_from_a_host_reaches_the_terminal_unescaped():
    nasty = "\x1b[2J[bold red]x[/]\x07\r"
    facts = document.from_data({"host": nasty, "facts": {}})
    shown = printed(
        [
            HostResult(facts.host, "ok", "", facts, (finding(observed=plain_text.value(nasty)),)),
            result("b", state="dropped", message=nasty),
        ]
    )
    assert not set(shown) & set("\x1b\x07\r")
    assert "[bold red]" in shown, "markup is text"


def test_unreached_hosts_are_shown_by_cause():
    shown = printed(
        [result("a", state="refused", message="port 22"), result("b", state="refused", message="port 22"), result("c")]
    )
    assert "refused  a,b: port 22" in shown
    assert "2 not reached" in shown


def test_checks_that_need_root_fold_into_one_line():
    reason = "/sys/x: permission denied: needs root (--become)"
    found = [
        finding(f"check-{number}", status="unknown", reason=reason.replace("x", str(number))) for number in range(20)
    ]
    shown = printed([result("a", *found)])
    assert shown.count("permission denied") == 1
    assert "UNKNOWN: could not be read (20 checks)" in shown


@pytest.mark.parametrize(
    ("results", "fail_on", "code"),
    [
        ([result("a")], "low", 0),
        ([result("a", finding(severity="low"))], "medium", 0),
        ([result("a", finding(severity="medium"))], "medium", 1),
        ([result("a", finding(severity="critical"))], "never", 0),
        ([result("a", finding(status="waived"))], "low", 0),
        ([result("a", finding(status="unknown", severity="high"))], "medium", 3),
        ([result("a", finding(status="unknown", severity="low"))], "medium", 0),
        ([result("a", finding()), result("b", state="refused")], "medium", 3),
        ([result("b", state="refused")], "never", 3),
    ],
)
def test_the_exit_code_says_what_scripts_need(results, fail_on, code):
    assert summary.exit_code(summary.summarise(results), fail_on) == code


def test_the_json_form_has_every_finding_of_every_host():
    found = audit_document.audit(
        [result("a", finding(), finding("b", status="pass")), result("c", state="refused", message="port 22")]
    )
    assert [host["name"] for host in found["hosts"]] == ["a", "c"]
    assert [one["status"] for one in found["hosts"][0]["findings"]] == ["fail", "pass"]
    assert found["summary"]["reached"] == 1


ALIKE = finding()


@pytest.mark.parametrize(
    "results",
    [
        [],
        [result("a", ALIKE, finding("b", status="pass")), result("b", ALIKE), result("c", state="refused")],
        [result('"findings": [', reporting.fixable(subjects={"GPU0": "x"}, reason='"hosts": [\n'))],
        reporting.hostile(),
    ],
    ids=["none", "some", "misleading", "hostile"],
)
def test_written_host_by_host_the_json_form_is_the_very_same(results, monkeypatch):
    monkeypatch.setattr(json_document.time, "time", lambda: 1)
    stream = io.StringIO()
    audit_document.write_audit(results, stream)
    whole = audit_document.audit(results)
    assert json.loads(stream.getvalue()) == whole
    hosts = json_document.text({name: each for name, each in whole.items() if name not in ("conclusions", "examined")})
    assert stream.getvalue().startswith(hosts.removesuffix("\n}\n") + ',\n "conclusions": ['), (
        "each of these has a line"
    )


@pytest.mark.parametrize(
    ("hosts", "folded"),
    [
        (["gpu002", "gpu001", "login"], "gpu[001-002],login"),
        ([], ""),
        (["weird name", "a[b"], "a[b,weird name"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.[1-2]"),
    ],
)
def test_host_names_fold(hosts, folded):
    assert nodeset.fold(hosts) == folded


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0, "", "0"),
        (True, "", "yes"),
        (None, "", "none"),
        ([1, 2, 3], "", "1 2 3"),
        (65536, "bytes", "64 KiB"),
        (700000, "mW", "700 W"),
        (400000, "Mb/s", "400 Gb/s"),
        (1.5, "", "1.5"),
        ([], "", "none"),
        ({"a": 1}, "", "a 1"),
    ],
)
def test_values_read_as_people_write_them(value, unit, shown):
    assert plain_text.value(value, unit) == shown


def test_numbered_subjects_fold():
    assert plain_text.names(["GPU0", "GPU1", "GPU2", "GPU7", "eth0"]) == "GPU0-2, GPU7, eth0"


def test_the_next_command_is_never_broken_over_lines():
    stream, long = io.StringIO(), "-i prod -s a-check-with-quite-a-long-name-of-its-own" * 3
    full.write([result("a", finding(fix=Fix("sysctl", "a.b", 10, "none")))], stream, CommandOptions(long), {})
    assert f"nodetune apply {long}\n" in stream.getvalue()


def test_values_computed_for_each_host_are_shown_for_each():
    hosts = [result(f"gpu{size}", finding(fix=Fix("sysctl", "a.b", size, "none"))) for size in (1, 2)]
    assert "a.b = 1 (" in printed(hosts)
    assert "a.b = 2 (" in printed(hosts)


def test_a_long_list_of_subjects_is_cut_with_a_count():
    assert plain_text.names([f"0000:{number:02x}:00.1" for number in range(0, 40, 2)]).endswith(" and 8 more")
