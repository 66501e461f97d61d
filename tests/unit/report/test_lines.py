"""An audit as lines and as CSV: every finding that needs a look, and nothing that a tool would take for more than text."""

import csv
import io

import pytest

from nodetune.api.model import Finding, HostResult
from nodetune.cli.commands.audit import command
from nodetune.foundation import text
from nodetune.report import csv as report_csv
from nodetune.report import lines
from tests.support.commandline import nodetune

HOSTILE = [
    '=cmd|" /C calc"!A0',
    "+1+2",
    "-2+3+cmd",
    "@SUM(A1)",
    " =1",
    "\t=1",
    "\uff1d1+1",
    "a\r\n=b",
    "\x1b[2Jgone",
    "x\tlow\tforged",
]


def found(check, status="fail", severity="high", **more):
    return Finding(check, status, severity, **{"title": f"{check} is wrong", "observed": "1", "wanted": "0", **more})


def results(*findings, **more):
    return [HostResult("gpu1", "ok", findings=findings), *more.get("other", ())]


def as_lines(given):
    stream = io.StringIO()
    lines.write(given, stream)
    return [line.split("\t") for line in stream.getvalue().splitlines()]


def as_csv(given):
    stream = io.StringIO()
    report_csv.write(given, stream, checks={})
    return list(csv.DictReader(io.StringIO(stream.getvalue())))


def test_a_finding_is_a_line_with_five_columns():
    assert as_lines(results(found("a"))) == [["gpu1", "high", "a", "a is wrong", "1, wanted 0"]]


def test_the_most_severe_comes_first_and_what_passed_is_left_out():
    given = results(found("a", severity="low"), found("b", severity="critical"), found("c", status="pass"))
    assert [row[2] for row in as_lines(given)] == ["b", "a"]


def test_what_is_unknown_and_who_was_not_reached_have_lines():
    given = results(
        found("a", "unknown", reason="needs root"), other=[HostResult("gpu2", "refused", "nothing listens")]
    )
    assert as_lines(given) == [
        ["gpu1", "unknown", "a", "a is wrong", "needs root"],
        ["gpu2", "not-reached", "-", "refused", "nothing listens"],
    ]


def test_the_table_has_a_row_for_each_finding_that_needs_a_look():
    given = results(found("a"), found("b", "waived", reason="until May"), found("c", "skip"), found("d", "pass"))
    rows = as_csv([*given, HostResult("gpu2", "refused", "nothing, listens")])
    assert [(row["check"], row["status"]) for row in rows] == [("a", "fail"), ("b", "waived"), ("", "not-reached")]
    assert rows[0] == {
        "host": "gpu1",
        "status": "fail",
        "severity": "high",
        "check": "a",
        "area": "site",
        "title": "a is wrong",
        "observed": "1",
        "wanted": "0",
        "reason": "",
    }
    assert (rows[2]["title"], rows[2]["reason"]) == ("refused", "nothing, listens")


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_is_no_formula_escape_or_line(value):
    given = [HostResult(value, "ok", findings=(found("a", observed=value, reason=value, title=value),))]
    given.append(HostResult("gpu2", value, value))
    tables = as_lines(given), [list(row.values()) for row in as_csv(given)]
    for rows in tables:
        assert len(rows) == 2
        for cell in (cell for row in rows for cell in row):
            assert cell.isprintable()
            assert cell.strip()[:1] not in tuple("=+@\uff1d")
            assert not cell.strip().startswith("-") or cell == "-"
    assert {len(row) for row in tables[0]} == {5}


@pytest.mark.parametrize("number", ["-1", "+3", "-0.5", "12", "-"])
def test_a_number_stays_a_number(number):
    assert text.cell(number) == number


def test_the_ending_of_a_file_asks_for_csv(tmp_path):
    nodetune("audit", "--facts", "h200-x4", "-o", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith("host,status,severity,check,area,title")


def test_every_failing_check_is_a_line():
    done = nodetune("audit", "--facts", "h200-x4", "--format", "lines", "--fail-on", "never")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {len(row) for row in rows} == {5}
    assert {row[0] for row in rows} == {"h200-x4"}
    assert {"medium", "info"} <= {row[1] for row in rows} <= {"medium", "info", "unknown"}


def test_the_command_offers_both():
    formats = next(param.type.choices for param in command.params if param.name == "output_format")
    assert {"lines", "csv"} <= set(formats)
