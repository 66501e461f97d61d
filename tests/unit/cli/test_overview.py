"""`nodetune` without a command: what was done last, and what to do next."""

import json
import shutil
import time

import pytest

from nodetune.cli import last_results, overview
from nodetune.foundation import paths
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.remediation.runs import record
from nodetune.remediation.runs.record import Run
from tests.support.commandline import nodetune

MACHINE = paths.bundled("facts/recorded") / "h200-x4.json"
AUDIT = {"hosts": 128, "lost": 2, "failing": {"high": 3, "low": 9}, "worst": "gpu-lost", "worst_host": "gpu017"}


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch):
    """A folder of records of this test alone."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("NODETUNE_RUNS", str(folder))
    return folder


@pytest.fixture
def facts(tmp_path):
    """Facts of a machine that is not an example."""
    return shutil.copy(MACHINE, tmp_path / "gpu1.json")


def shown():
    return dict(overview.lines())


def run_of(command="apply", code=OK, outcomes=(), hosts=("gpu1", "gpu2")):
    run = Run.create(command, {}, hosts)
    run.save("outcomes", [{"outcome": each} for each in outcomes])
    run.finish(code)
    return run


def older(path, seconds):
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "time": told["time"] - seconds}))


def test_where_nothing_is_recorded_it_is_the_help():
    done = nodetune()
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: nodetune [OPTIONS] COMMAND" in done.stdout


def test_an_audit_is_followed_by_the_plan_for_its_findings(facts):
    audited = nodetune("audit", "--facts", facts)
    assert audited.returncode in (1, 3)  # 3: the recording lacks facts of newer checks
    done = nodetune()
    assert done.returncode == 0
    label, *words = done.stdout.splitlines()[0].split()
    assert (label, words[2:4]) == ("audit", ["ago,", "--facts"])
    assert "1 host: 2 medium, 3 info findings; worst: " in done.stdout
    assert done.stdout.splitlines()[-1] == f"next      nodetune plan --facts {facts}"


def test_it_is_at_most_ten_lines_of_bounded_length():
    run_of(outcomes=["fixed"] * 5000, hosts=[f"{number}-gpu" * 9 for number in range(500)])
    last_results.keep("audit", "-i prod " * 500, AUDIT)
    last_results.keep("verify", "-i prod", {"hosts": 3, "lost": 1, "short": 1})
    last_results.keep("guard status", "", {"nodes": 4, "lost": 1, "modes": {"enforce": 3}, "drained": 0})
    lines = nodetune().stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["audit", "apply", "verify", "guard", "next"]
    assert max(map(len, lines[:-1])) < 200


def test_each_line_says_what_was_found():
    last_results.keep("audit", "-i prod -b", AUDIT)
    last_results.keep("verify", "-i prod", {"hosts": 3, "lost": 1, "short": 1})
    last_results.keep("guard status", "", {"nodes": 4, "lost": 1, "modes": {"enforce": 3}, "drained": 2})
    run = run_of(outcomes=["fixed", "fixed", "pending reboot"])
    found = shown()
    assert found["audit"].endswith(
        "-i prod -b: 128 hosts, 2 not reached: 3 high, 9 low findings; worst: gpu-lost on gpu017"
    )
    assert found["apply"].endswith(f"gpu[1-2]: done, 2 fixed, 1 pending reboot ({run.id})")
    assert found["verify"].endswith("-i prod: 3 hosts, 1 not reached, 1 below target")
    assert found["guard"].endswith("this host: 4 nodes, 3 enforce, 2 drained by the guard, 1 not reached")


@pytest.mark.parametrize(("failing", "said"), [({"high": 1}, "1 high finding;"), ({"low": 2}, "2 low findings;")])
def test_one_finding_is_no_plural(failing, said):
    last_results.keep("audit", "", {**AUDIT, "failing": failing})
    assert said in shown()["audit"]


def test_a_run_that_failed_comes_first():
    last_results.keep("audit", "-i prod", AUDIT)
    older(last_results._path("audit"), 60)
    run = run_of(code=END_STATE_MISSED)
    assert shown()["next"] == f"nodetune runs show {run.id}"


def test_after_changes_the_hosts_are_audited_again():
    last_results.keep("audit", "-i prod", AUDIT)
    older(last_results._path("audit"), 60)
    run_of()
    assert shown()["next"] == "nodetune audit -i prod"


def test_drained_nodes_come_before_findings():
    last_results.keep("audit", "-i prod", {**AUDIT, "fixable": True})
    last_results.keep("guard status", "-i prod -b", {"nodes": 4, "lost": 0, "modes": {}, "drained": 1})
    assert shown()["next"] == "nodetune guard resume -i prod -b --dry-run"


@pytest.mark.parametrize(
    ("more", "following"),
    [
        ({"fixable": True}, "nodetune plan -i prod"),
        ({"judged": "--site s.yml"}, "nodetune explain gpu-lost --site s.yml"),
        ({"failing": {}}, "nodetune verify -i prod --suite full"),
    ],
)
def test_what_is_next_follows_from_what_was_found(more, following):
    last_results.keep("audit", "-i prod", {**AUDIT, **more})
    last_results.keep("verify", "-i prod --suite full", {"hosts": 3, "lost": 0, "short": 1})
    assert shown()["next"] == following


def test_an_audit_of_yesterday_is_done_again():
    last_results.keep("audit", "-i prod", {**AUDIT, "fixable": True})
    older(last_results._path("audit"), 2 * overview.DAY)
    assert shown()["audit"].startswith("2 days ago, -i prod: ")
    assert shown()["next"] == "nodetune audit -i prod"


def test_the_next_command_works_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "my site").mkdir()
    monkeypatch.chdir(tmp_path / "my site")
    last_results.keep("audit", "-i hosts.yml", {**AUDIT, "fixable": True})
    assert shown()["next"] == "nodetune plan -i hosts.yml"
    monkeypatch.chdir(tmp_path)
    assert shown()["next"] == f"cd '{tmp_path}/my site' && nodetune plan -i hosts.yml"


def test_audits_of_a_part_and_of_examples_are_not_recorded(facts, records):
    nodetune("audit", "--facts", facts, "-s", "memory")
    nodetune("audit", "--facts", MACHINE)
    assert not records.exists()


def test_only_the_last_audit_is_kept(facts, records):
    for _ in range(3):
        nodetune("audit", "--facts", facts)
    assert [path.name for path in records.iterdir()] == ["latest-audit.json"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema": "nodetune.latest/1", "time": "x"}', "\x00" * 70000])
def test_a_damaged_record_counts_as_none(records, content):
    records.mkdir()
    (records / "latest-audit.json").write_text(content)
    assert overview.lines() == []


def test_a_record_cannot_move_the_cursor(records):
    last_results.keep("audit", "\x1b[2J", {**AUDIT, "worst": "\x1b]0;x\x07"})
    assert "\x1b" not in nodetune().stdout


def test_where_nothing_can_be_written_the_audit_is_as_ever(facts, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "file" / "runs"))
    done = nodetune("audit", "--facts", facts)
    assert (done.returncode in (1, 3), done.stderr) == (True, "")
    assert nodetune().stdout.startswith("Usage: ")


def test_rollbacks_and_provisions_are_runs_too():
    run_of("guard install")
    assert overview.lines() == []
    run_of("rollback")
    assert "rollback" in shown()
    assert time.time() - overview._started(record.listing()[0]) < 60
