"""What a new user stumbled over in five tasks: lines that break where they are copied, counts of nothing, missing hints."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from nodetune.api.model import HostResult
from nodetune.cli import overview
from nodetune.cli.commands import _apply
from nodetune.foundation import UserError
from nodetune.guard.deploy import cluster
from nodetune.guard.deploy.install import PreparedInstall
from nodetune.guard.node.scontrol import ScontrolError
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.runs.record import Run, listing
from nodetune.report import markdown
from nodetune.report.sections import CommandOptions
from nodetune.report.text import apply, audit, full, guard, runs
from nodetune.report.text.lines import Lines
from tests.support.commandline import nodetune
from tests.support.reporting import finding, result

LOST = [HostResult("gpu1", "refused", "10.0.0.1 port 22 refused the connection")]


def printed(write, width=80):
    stream = io.StringIO()
    write(Lines(Console(file=stream, width=width, highlight=False, markup=False, emoji=False)))
    return stream.getvalue()


def told(write, *arguments, **more):
    stream = io.StringIO()
    write(*arguments, stream, **more)
    return stream.getvalue()


# lines


@pytest.mark.parametrize(
    ("width", "rows"),
    [
        (80, ["all fixes: nodetune plan -i prod   why: nodetune explain ID"]),
        (50, ["all fixes: nodetune plan -i prod", "why: nodetune explain ID"]),
        (20, ["all fixes: nodetune plan -i prod", "why: nodetune explain ID"]),
    ],
)
def test_commands_share_a_line_or_have_one_each(width, rows):
    proposed = ("all fixes:", "nodetune plan -i prod"), ("why:", "nodetune explain ID")
    assert printed(lambda out: out.commands(*proposed), width).splitlines() == rows


def test_a_number_stays_with_what_it_counts():
    text = printed(lambda out: out.line("3 hosts audited: 3 low, 3 info findings · 189 passed"), 48)
    assert text.splitlines() == ["3 hosts audited: 3 low, 3 info findings ·", "189 passed"]


def test_only_rows_after_the_first_hang():
    text = printed(lambda out: out.line("waived    ", "a " * 34 + "words that go on", hang=" " * 10))
    first, second = text.splitlines()
    assert (len(first) > 70, second[:11]) == (True, " " * 10 + second[10:11])


def test_no_two_empty_lines_follow_each_other():
    text = told(full.write, [result("gpu1", finding("swap-in-use"))], commands=CommandOptions(), checks={})
    assert "\n\n\n" not in text


# hosts that were not reached


def test_an_audit_that_reached_nobody_finds_nothing_and_says_so():
    assert told(audit.write, LOST).startswith("0 hosts audited, 1 not reached\n\nNOT REACHED: 1 of 1 host\n")
    assert "0 hosts audited, **1 not reached**\n" in told(markdown.write, LOST, checks={})


def test_guard_diff_judges_no_policy_of_hosts_that_it_did_not_reach():
    stream = io.StringIO()
    guard.print_diff(stream, PreparedInstall([], [], LOST, {}), "-i prod")
    assert "refused" in stream.getvalue()
    assert "would change" not in stream.getvalue()


@pytest.mark.parametrize(
    ("say", "about", "said"),
    [
        (overview._audit, {"hosts": 4, "lost": 4}, "4 hosts, 4 not reached"),
        (overview._audit, {"hosts": 4, "lost": 1}, "4 hosts, 1 not reached: no findings"),
        (overview._verify, {"hosts": 4, "lost": 4}, "4 hosts, 4 not reached"),
        (overview._verify, {"hosts": 4, "lost": 1}, "4 hosts, 1 not reached, none below target"),
    ],
)
def test_the_overview_judges_no_host_that_was_not_reached(say, about, said):
    assert say(about) == said


@pytest.mark.parametrize(("code", "said"), [(0, "done"), (3, "incomplete"), (4, "end state not reached")])
def test_the_overview_says_how_a_run_ended_in_words(tmp_path, monkeypatch, code, said):
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path))
    Run.create("apply", {}, ["gpu1"]).finish(code)
    assert f" ago, gpu1: {said} (" in dict(overview.lines())["apply"]


# hints


def test_an_unknown_check_of_a_site_is_asked_for_its_file(tmp_path):
    site = tmp_path / "site.yml"
    site.write_text("add:\n  - {id: site-a, sysctl: a.b, accept: 1}\n")
    assert "a check of your own needs --site FILE" in nodetune("explain", "site-a").stderr
    assert nodetune("explain", "site-a", "--site", site).returncode == 0
    assert "needs --site" not in nodetune("explain", "site-b", "--site", site).stderr


class Elsewhere:
    """A machine with Slurm's commands that belongs to no cluster."""

    def nodes(self):
        raise ScontrolError("scontrol --oneliner: scontrol: fatal: Could not establish a configuration source")


class Empty:
    """A cluster without nodes."""

    def nodes(self):
        return []


def test_slurm_that_cannot_be_asked_says_where_it_can():
    with pytest.raises(cluster.ClusterError, match=r"run this on a machine of the cluster, or set SLURM_CONF$"):
        cluster.nodes(Elsewhere(), [])
    with pytest.raises(cluster.ClusterError, match=r"^Slurm has no node gpu1$"):
        cluster.nodes(Empty(), ["gpu1"])


def test_a_question_that_nobody_can_answer_is_one_line(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(UserError, match="use --yes"):
        _apply.need_terminal(yes=False)


def test_one_run_is_no_plural(tmp_path, monkeypatch):
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path))
    Run.create("apply", {}, ["gpu1"]).finish(0)
    stream = io.StringIO()
    runs.print_runs(stream, listing(), 20, tmp_path)
    assert f"\n1 run in {tmp_path}\n" in stream.getvalue()


# explain


def heads(output, head):
    return [line for line in output.splitlines() if line.startswith(head)]


def test_explain_shows_the_value_of_this_host():
    value = Path("/proc/sys/vm/max_map_count").read_text().strip()
    (line,) = heads(nodetune("explain", "max-map-count-low").stdout, "On this host: ")
    assert line.startswith(f"On this host: {value}, ") or "not applicable" in line


def test_explain_shows_the_value_of_saved_hosts():
    done = nodetune("explain", "dirty-limit-high", "swap-large", "--facts", "h200-x4")
    assert heads(done.stdout, "On h200-x4: ") == [
        "On h200-x4: 101 GiB, not as wanted",
        "On h200-x4: 0 bytes, as wanted",
    ]
    assert heads(done.stdout, "On this host: ") == []


def test_explain_reads_no_host_for_comparisons_between_hosts():
    assert heads(nodetune("explain", "fleet-bios-differs", "--facts", "h200-x4").stdout, "On ") == []


def test_explain_says_what_is_wrong_with_saved_facts(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    done = nodetune("explain", "swap-large", "--facts", tmp_path / "bad.json")
    assert (done.returncode, done.stderr.count("\n"), "not JSON" in done.stderr) == (2, 1, True)


@pytest.mark.parametrize(("width", "columns"), [("80", 1), ("140", 2)])
def test_runs_are_in_columns_where_these_fit(tmp_path, monkeypatch, width, columns):
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path))
    monkeypatch.setenv("COLUMNS", width)
    Run.create("guard uninstall", {}, ["gpu1"]).finish(0)
    Run.create("apply", {}, [f"gpu{number}" for number in range(1, 20, 2)]).finish(4)
    stream = io.StringIO()
    runs.print_runs(stream, listing(), 20, tmp_path)
    rows = [line for line in stream.getvalue().splitlines() if " done" in line]
    assert len({line.index("done") for line in rows}) == 1
    assert len({line.find("gpu") for line in rows}) == 3 - columns, stream.getvalue()


def file_diff(name, lines):
    return "\n".join([f"--- {name} (before: no file)", f"+++ {name} (after: mode 0755)", *lines])


@pytest.mark.parametrize(("count", "times"), [(9, 2), (10, 1)])
def test_many_equal_lines_of_two_files_are_shown_once(count, times):
    lines = [f"+{number}" for number in range(count)]
    diffs = {"gpu1": [file_diff("/a/prolog", lines), file_diff("/a/epilog", lines), file_diff("/a/other", ["+x"])]}
    stream = io.StringIO()
    apply.print_diffs(stream, diffs, single=True)
    text = stream.getvalue()
    assert (text.count("+0\n"), "+++ /a/epilog (after" in text, "+x" in text) == (times, True, True)
    assert (f"the same {count} lines as /a/prolog" in text) == (times == 1)


@pytest.mark.parametrize(("made", "said"), [((), "would be undone: /etc/a"), (("run",), "undone: /etc/a")])
def test_a_rollback_that_asks_says_what_it_would_undo(made, said):
    done = {"done": [{"label": "/etc/a", "changed": True}]}
    stream = io.StringIO()
    apply.print_rollback(stream, {"gpu1": Outcome("gpu1", results=(Event("ok", "gpu1", result=done),))}, made)
    assert stream.getvalue().startswith(f"{said}\n")
