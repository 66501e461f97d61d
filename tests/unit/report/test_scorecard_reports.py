"""The reports on a scorecard: a headline, what fails with the command that acts on it, and why the rest is not judged."""

import io
import json
import re
import shlex

import jsonschema
import pytest
from markdown_it import MarkdownIt

from nodetune.audit import scorecards
from nodetune.audit.request import AGAINST
from nodetune.foundation import paths
from nodetune.report import scorecard_markdown
from nodetune.report.sections import CommandOptions
from nodetune.report.text import scorecard
from tests.support.commandline import nodetune
from tests.support.reporting import HOSTILE, finding, fixable, result

CARD = scorecards.read("settings")


def printed(results, full=False, columns=120):
    stream = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        scorecard.write(results, stream, CARD, CommandOptions("-i prod"), full=full)
    return stream.getvalue()


def test_the_headline_counts_passes_and_what_is_not_judged():
    hosts = [result(name, finding("thp-unsuitable", status="pass"), fixable()) for name in ("a", "b")]
    head = printed(hosts).partition("nodetune's settings:")[0]
    assert head.startswith("settings on 2 hosts: 1 fail, ")
    assert re.search(r"1 fail, \d+ not judged, 1 pass, .* 17 refused with a reason$", " ".join(head.split()))


def test_what_is_not_judged_comes_after_failures_with_its_reason_and_before_the_rest():
    off = "gpu-ecc-off"
    hosts = [
        result("a", fixable(), finding("swap-large", status="pass"), finding(off, status="unknown", reason="lost"))
    ]
    text = " ".join(printed(hosts, full=True).split())
    places = [
        text.index(title) for title in ("APPLY CAN FIX", "NOT JUDGED (", "explain -i prod -s gpu-ecc-off", "REFUSED (")
    ]
    assert places == sorted(places)
    assert "gpu.ecc ECC mode (lost; gpu-ecc-change-pending is left out)" in text


def test_a_failing_row_has_its_check_hosts_and_command():
    text = printed([result("a", fixable()), result("b", finding("dirty-limit-high", status="pass"))])
    row = next(line for line in text.splitlines() if "memory.dirty_ratio" in line)
    assert "dirty-limit-high" in row
    assert row.split("dirty-limit-high")[1].split()[0] == "a"
    assert "nodetune apply -i prod -s dirty-limit-high\n" in text


def test_the_command_has_the_checks_of_its_rows_alone():
    text = printed([result("a", fixable(), finding("swap-on", manual="Do it."), finding("gpu-lost"))])
    assert "nodetune explain -i prod -s gpu-lost -s swap-on" not in text, "no criterion names gpu-lost"
    assert "nodetune explain -i prod -s swap-on --section by-hand" in text


def test_a_command_that_explains_many_checks_has_the_whole_section():
    unread = [finding(check, status="unknown") for each in CARD.criteria for check in each.checks]
    text = printed([result("a", *unread)])
    assert "nodetune explain -i prod --section unknown\n" in text
    assert " -s " not in text


def test_a_thousand_hosts_make_one_row():
    hosts = [result(f"gpu{number:04}", finding("swap-on", observed=f"{number} MiB")) for number in range(1000)]
    text = printed(hosts)
    assert len([line for line in text.splitlines() if "swap-on" in line and "to do" not in line]) == 1
    assert "all 1000 hosts" in text


def test_no_line_is_wider_than_the_screen_except_commands():
    for columns in (80, 120):
        lines = printed(
            [result("a", fixable(), finding("swap-on", observed="word " * 60))], columns=columns
        ).splitlines()
        assert [each for each in lines if len(each) > columns and "nodetune " not in each] == []


def test_full_names_every_criterion():
    text = printed([result("a", fixable())], full=True)
    assert {id_ for each in CARD.criteria for id_ in each.ids if id_ not in text} == set()


def test_hosts_that_were_not_reached_are_counted():
    text = printed([result("a"), result("b", state="refused", message="connection refused")])
    assert "; 1 host not reached" in " ".join(text.split())
    assert "refused  b: connection refused\n" in text


def test_without_any_host_nothing_is_counted():
    head = printed([result("a", state="refused")]).splitlines()[0]
    assert head == "settings: none of 1 host was reached"


@pytest.mark.parametrize("name", AGAINST)
def test_the_document_keeps_to_its_schema(name):
    found = json.loads(nodetune("audit", "--facts", "h100-x2", "--against", name, "--format", "json").stdout)
    jsonschema.validate(found, json.loads((paths.bundled("data/schemas") / "audit.json").read_text()))
    counts = found["against"]["counts"]
    assert counts["judged"] == counts["pass"] + counts["fail"]
    assert counts["criteria"] == sum(len(each["ids"]) for each in found["against"]["criteria"])
    assert all(each["checks"] or each["why"] or each["shown"] for each in found["against"]["criteria"])


def test_the_table_has_a_row_for_each_criterion():
    stream = io.StringIO()
    scorecard_markdown.write([result(text, finding("swap-on")) for text in HOSTILE], stream, CARD)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(stream.getvalue())
    assert sum(each.type == "tr_open" for each in tokens) == len(CARD.criteria) + 1
    inner = {inner.type for each in tokens for inner in each.children or ()}
    assert inner <= {"text", "code_inline", "softbreak"}


def test_the_exit_code_is_that_of_the_audit():
    for words in (("--facts", "h100-x2"), ("--facts", "h100-x2", "--fail-on", "never")):
        assert nodetune("audit", *words, "--against", "ai-cloud").returncode == nodetune("audit", *words).returncode


@pytest.mark.parametrize("output_format", ["html", "csv", "junit", "prometheus", "lines"])
def test_other_formats_are_refused_in_one_line(output_format, tmp_path):
    words = ("--against", "clustermax", "--format", output_format, "-o", str(tmp_path / "out"))
    done = nodetune("audit", "--facts", "h100-x2", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--against needs --format text, json or markdown" in done.stderr


def test_the_proposed_commands_work():
    text = nodetune("audit", "--facts", "h100-x2", "--against", "clustermax").stdout
    proposed = re.findall(r"(nodetune (?:audit|explain|plan) .*)", text)
    assert len(proposed) >= 2
    for each in proposed:
        assert nodetune(*shlex.split(each)[1:]).returncode in (0, 1, 3)
