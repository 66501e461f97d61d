"""The record of runs: what is kept, how it is found again, and what a torn or foreign folder does."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nodetune.api.model import HostFacts, Value
from nodetune.cli.main import group
from nodetune.facts import document as facts_document
from nodetune.remediation.ansible import events
from nodetune.remediation.ansible.play import recorded
from nodetune.remediation.runs import record
from nodetune.remediation.runs.diffs import unified
from nodetune.remediation.runs.files import RunError
from nodetune.remediation.runs.record import Run
from tests.support.documents import valid

HOSTILE = "../../../etc/cron.d/\x1b[2Jowned"
LONG = "漢" * 300


@pytest.fixture
def root(tmp_path):
    return tmp_path / "state" / "runs"


def new(root, hosts=("gpu1", "gpu2"), **options):
    return Run.create("apply", options, hosts, "prod", root)


def test_all_that_was_kept_is_found_again_by_another_process(root):
    run = new(root, max_disruption="reboot")
    run.save("plan", {"steps": [{"host": "gpu1", "check": "swap-on"}]})
    run.save_facts(HostFacts("gpu1", {"sysctl.vm.swappiness": Value(60)}))
    run.save_changes("gpu1", [{"group": "sysctl", "changes": []}])
    run.add_entries("gpu1", [{"n": 1, "before": "60"}])
    run.add_entries("gpu1", [{"n": 2, "before": "ü\u2028"}])
    run.add_event({"host": "gpu1", "status": "ok"})
    run.finish(4)

    again = Run(run.folder)
    assert (again.about["command"], again.about["options"], again.hosts) == (
        "apply",
        {"max_disruption": "reboot"},
        ["gpu1", "gpu2"],
    )
    assert again.document("plan")["steps"][0]["check"] == "swap-on"
    assert facts_document.load(run.folder / "facts" / "gpu1.json").facts["sysctl.vm.swappiness"] == Value(60)
    assert again.changes("gpu1") == [{"group": "sysctl", "changes": []}]
    assert [entry["n"] for entry in again.entries("gpu1")] == [1, 2]
    assert again.entries("gpu1")[1]["before"] == "ü\u2028"
    assert again.entries("gpu2") == []
    assert again.events()[0]["status"] == "ok"
    assert (again.state(), again.about["exit"]) == ("done", 4)


@pytest.mark.parametrize("code", [0, 4, 5])
def test_a_recorded_run_ends_with_the_code_that_it_is_given(root, code):
    with record.recorded("apply", {}, ["gpu1"], None, root) as run:
        assert Run(run.folder).state() == "running"
        run.code = code
    about = Run(run.folder).about
    assert (about["exit"], "undone" in about) == (code, False)


def test_a_recorded_run_that_breaks_has_missed_its_end(root):
    with pytest.raises(ZeroDivisionError), record.recorded("rollback", {}, ["gpu1"], None, root) as run:  # noqa: PT012  (what it does before it breaks counts)
        run.undone = []
        1 / 0  # noqa: B018
    again = Run(run.folder)
    assert (again.state(), again.about["exit"], again.about["undone"]) == ("done", 4, [])


def test_nobody_else_may_read_a_record_whatever_the_umask(root):
    before = os.umask(0)
    try:
        run = new(root)
        run.save("plan", {})
        run.add_entries("gpu1", [{"n": 1}])
        run.finish(0)
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(each.stat().st_mode) for each in run.folder.rglob("*") if each.is_file()}
    folders = {stat.S_IMODE(each.stat().st_mode) for each in (root, run.folder, run.folder / "entries")}
    assert (modes, folders) == ({0o600}, {0o700})


def test_the_names_of_hosts_cannot_leave_the_folder_nor_collide(root):
    hosts = [HOSTILE, LONG, LONG + "2", "a/b", "a_b", "..", "."]
    run = new(root, hosts)
    for number, host in enumerate(hosts):
        run.add_entries(host, [{"n": number}])
        run.add_diffs(host, [{"before": "", "after": f"{number}\n"}])
    again = Run(run.folder)
    assert [again.entries(host)[0]["n"] for host in hosts] == list(range(len(hosts)))
    assert len(list((run.folder / "entries").iterdir())) == len(hosts)
    assert {each.parent for each in root.parent.rglob("*.jsonl")} == {run.folder / "entries"}


def test_a_host_that_is_not_of_the_run_is_named(root):
    with pytest.raises(RunError, match=r"no host 'gpu9': its hosts: gpu1-2"):
        new(root).entries("gpu9")


def test_a_run_whose_process_was_killed_is_interrupted(root):
    code = f"""
import sys, time
from pathlib import Path
from nodetune.remediation.runs.record import Run
run = Run.create("apply", {{}}, ["gpu1"], None, Path({str(root)!r}))
print(run.id, flush=True)
time.sleep(600)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        run = record.find(child.stdout.readline().strip(), root)
        assert run.state() == "running"
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert Run(run.folder).state() == "interrupted"


@pytest.mark.parametrize(
    ("changed", "state"),
    [({"boot": "another"}, "interrupted"), ({"start": "1"}, "interrupted"), ({"machine": "login9"}, "elsewhere")],
)
def test_a_process_of_the_same_number_is_not_the_runs(root, changed, state):
    run = new(root)
    about = json.loads((run.folder / "run.json").read_text())
    about["controller"].update(changed)
    (run.folder / "run.json").write_text(json.dumps(about))
    assert Run(run.folder).state() == state


def test_a_journal_whose_last_line_is_torn_keeps_the_others(root):
    run = new(root)
    run.add_entries("gpu1", [{"n": 1}])
    with (run.folder / "entries" / "gpu1.jsonl").open("a") as stream:
        stream.write('{"n": 2, "bef')
    assert run.entries("gpu1") == [{"n": 1}]


def test_a_full_disk_leaves_whole_lines_and_the_old_file(root):
    """A limit on the size of files replaces the disk: the kernel stops the write half way, too."""
    run = new(root)
    run.add_entries("gpu1", [{"n": 1}])
    run.save("plan", {"steps": []})
    code = f"""
import resource, signal
from pathlib import Path
from nodetune.remediation.runs.record import Run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
run = Run(Path({str(run.folder)!r}))
for act in (lambda: run.add_entries("gpu1", [{{"n": 2, "before": "x" * 9000}}]), lambda: run.save("plan", "x" * 9000)):
    try:
        act()
    except OSError as problem:
        print(problem.strerror)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["File too large"] * 2
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096
    assert run.entries("gpu1") == [{"n": 1}]
    assert run.document("plan") == {"steps": []}
    assert not list(run.folder.rglob("*.partial"))


def test_a_run_is_found_by_its_beginning_or_as_the_last(root):
    first, second = new(root), new(root)
    for run, name in ((first, "20261121-143000-4f2a"), (second, "20261122-090000-0001")):
        run.folder.rename(root / name)
    assert record.find("20261121", root).id == "20261121-143000-4f2a"
    assert record.find("last", root).id == "20261122-090000-0001"
    with pytest.raises(RunError, match="20261122-090000-0001 or 20261121-143000-4f2a: give more characters"):
        record.find("2026112", root)
    with pytest.raises(RunError, match=r"no run '20261121-143000-4f2b'; similar: 20261121-143000-4f2a"):
        record.find("20261121-143000-4f2b", root)
    with pytest.raises(RunError, match="no run"):
        record.find("../20261121-143000-4f2a", root)


def test_without_a_record_it_says_where_it_looked(root):
    with pytest.raises(RunError, match=f"no runs are recorded in {root}"):
        record.find("last", root)


def test_where_runs_are_kept_can_be_told(tmp_path, monkeypatch):
    monkeypatch.delenv("NODETUNE_RUNS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert record.place() == tmp_path / "nodetune" / "runs"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert record.place() == Path.home() / ".local" / "state" / "nodetune" / "runs"
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "env"))
    assert record.place() == tmp_path / "env"
    assert record.place(tmp_path / "option") == tmp_path / "option"


def test_unified_diffs_name_a_missing_last_newline():
    diff = {"before": "a\nb", "after": "a\nc\n", "before_header": "/etc/x", "after_header": "/etc/x\x1b[2J\n"}
    assert unified([diff]).splitlines() == [
        "--- /etc/x",
        "+++ /etc/x\\x1b[2J\\x0a",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "\\ No newline at end of file",
        "+c",
    ]


def test_only_a_newline_ends_a_line_of_a_diff():
    assert "+a\x0b\u2028b\n" in unified([{"before": "", "after": "a\x0b\u2028b\n"}])


def cli(*words):
    done = CliRunner().invoke(group, ["runs", *map(str, words)])
    if done.exception and not isinstance(done.exception, (SystemExit, RunError)):
        raise done.exception
    return done


def with_a_story(root):
    run = new(root)
    steps = [
        {"host": host, "check": "swappiness-high", "before": "60", "after": "10", "outcome": "fixed", "reason": ""}
        for host in ("gpu1", "gpu2")
    ]
    run.save(
        "outcomes", [*steps, {"host": "gpu2", "check": "swap-on", "outcome": "not applied", "reason": "sudo refused"}]
    )
    run.add_diffs("gpu1", [{"before": "60\n", "after": "10\x1b[2J\n", "before_header": "x", "after_header": "x"}])
    run.finish(0)
    return run


def test_runs_are_listed_next_to_torn_and_foreign_folders(root):
    run = with_a_story(root)
    (root / "20260101-000000-aaaa").mkdir()
    (root / "20260101-000000-bbbb").mkdir()
    (root / "20260101-000000-bbbb" / "run.json").write_text('{"schema": "nodet')
    (root / "notes.txt").write_text("mine")
    (root / "lost+found").mkdir()
    text = cli("--runs", root).output
    assert run.id in text
    assert text.count("unreadable") == 2
    assert "gpu[1-2]" in text
    assert "3 runs in" in text
    listed = valid("runs", cli("--runs", root, "--format", "json").output)["runs"]
    assert [each["state"] for each in listed] == ["done", "unreadable", "unreadable"]


def test_a_run_is_shown_with_step_results_and_diffs(root):
    run = with_a_story(root)
    short = cli("show", run.id, "--runs", root).output
    assert "fixed           swappiness-high  gpu[1-2]" in short
    assert "60 → 10" in short
    assert "not applied     swap-on  gpu2" in short
    assert "sudo refused" in short
    assert f"nodetune runs show {run.id} --diff" in short
    long = cli("--runs", root, "show", "last", "--diff").output
    assert "-60" in long
    assert "+10\\x1b[2J" in long
    assert "\x1b" not in long
    shown = valid("run-record", cli("show", "last", "--runs", root, "--format", "json").output)
    assert (shown["id"], shown["state"], shown["exit"]) == (run.id, "done", 0)
    assert list(shown["diffs"]) == ["gpu1"]


def test_figures_around_a_run_come_with_the_command_to_compare(root):
    run = with_a_story(root)
    run.save("before-verify", {"hosts": []})
    assert f"measured: {run.folder}/before-verify.json" in cli("show", run.id, "--runs", root).output
    run.save("after-verify", {"hosts": []})
    text = cli("show", run.id, "--runs", root).output
    assert f"nodetune verify --compare {run.folder}/before-verify.json {run.folder}/after-verify.json" in text
    shown = valid("run-record", cli("show", run.id, "--runs", root, "--format", "json").output)
    assert shown["after-verify"] == {"hosts": []}


def test_an_empty_record_says_so(root):
    assert cli("--runs", root).output == f"No runs are recorded in {root}.\n"


def test_a_wrong_id_is_one_line_and_exit_code_2(root):
    run = new(root)
    done = subprocess.run(
        [sys.executable, "-m", "nodetune", "runs", "show", "2020", "--runs", root], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == f"nodetune: no run '2020'; similar: {run.id}. To list all: nodetune runs\n"


def test_a_rollback_goes_to_the_hosts_of_the_run_by_default(tmp_path):
    run = Run.create("apply", {}, ["gpu01"], "gpu01,", tmp_path)
    run.finish(0)
    asked = ["rollback", run.id, "--runs", str(tmp_path), "--dry-run"]
    elsewhere = CliRunner().invoke(group, [*asked, "-i", "gpu02,"])
    assert "has none of these hosts" in str(elsewhere.exception)
    told = CliRunner().invoke(group, [*asked, "-l", "gpu02"])
    assert "gpu02" in str(told.exception)


STAGES = [
    {"stage": "preflight", "state": "done", "message": "open driver 580.1", "seconds": 1.0},
    {"stage": "packages", "state": "failed", "message": "no space left on /var", "seconds": 2.0},
    {"stage": "reboot", "state": "not reached", "message": "packages failed", "seconds": 0.0},
]
WELL = [{**each, "state": "done", "message": ""} for each in STAGES]


def provisioned(root):
    run = Run.create("provision", {}, ["gpu1", "gpu2"], "new", root)
    hosts = [
        {"name": "gpu1", "stages": WELL, "next": ""},
        {"name": "gpu2", "stages": STAGES, "next": "nodetune provision -i new -l gpu2 --from packages"},
    ]
    document = {"schema": "nodetune.provision/1", "nodetune": "0", "time": 1, "run": run.id, "hosts": hosts}
    run.save("provision", document)
    run.save("held", {"gpu1": {"system": "debian-12-x86_64", "driver": "", "packages": {}}})
    run.finish(4)
    return run


def test_a_provision_is_shown_by_stage_with_the_next_command(root):
    run = provisioned(root)
    shown = CliRunner().invoke(group, ["runs", "show", run.id, "--runs", str(root)])
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert any(line.split() == ["packages", "failed", "gpu2", "no", "space", "left", "on", "/var"] for line in lines)
    assert any(line.split() == ["reboot", "done", "gpu1"] for line in lines)
    assert "not reached" not in shown.output, "what follows from the failure is not told again"
    assert "packages failed; after fixing it: nodetune provision -i new -l gpu2 --from packages" in shown.output
    assert "No plan is recorded" not in shown.output


def test_a_provision_as_data_has_its_stages_and_what_was_held(root):
    run = provisioned(root)
    shown = CliRunner().invoke(group, ["runs", "show", run.id, "--runs", str(root), "--format", "json"])
    document = valid("run-record", shown.output)
    assert [each["name"] for each in document["provision"]["hosts"]] == ["gpu1", "gpu2"]
    assert document["held"]["gpu1"]["system"] == "debian-12-x86_64"


@pytest.mark.parametrize(
    "nasty", [[], {"hosts": 3}, {"hosts": [{"stages": [[], {"stage": []}], "name": {}, "next": [HOSTILE]}]}]
)
def test_a_torn_record_of_a_provision_is_shown_as_far_as_it_goes(root, nasty):
    run = Run.create("provision", {}, ["gpu1"], "new", root)
    run.save("provision", nasty)
    shown = CliRunner().invoke(group, ["runs", "show", run.id, "--runs", str(root)])
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output


def test_a_password_that_a_host_echoes_is_not_recorded(tmp_path):
    """It comes in what modules return: problems, differences, journal entries."""
    run = Run.create("apply", {}, ["gpu1"], None, tmp_path)
    reader, keep = events.Reader({"h0": "gpu1"}, ('hunter2 "x',)), recorded(run, lambda _event: None)
    said = 'sudo: hunter2 "x'
    result = {
        "problems": [{"checks": ["a-check"], "label": "x", "message": said}],
        "diff": [{"before": said + "\n", "after": "new\n", "before_header": "/x"}],
        "entries": [{"n": 0, "before": {"/x": said}}, {"n": 0, "ok": True}],
        "versions": {"driver": "1"},
    }
    raw = {"event": "runner_on_ok", "event_data": {"host": "h0", "task": "Change", "res": result}}
    event = reader.read(raw)
    keep(event)
    kept = "".join(path.read_text() for path in run.folder.rglob("*") if path.is_file())
    assert "hunter2" not in kept
    assert "hunter2" not in str(event.result)
    assert event.result["problems"][0] == {"checks": ["a-check"], "label": "x", "message": "sudo: (password)"}
    assert [sorted(entry) for entry in run.entries("gpu1")] == [["withheld"], ["n", "ok"]]


def test_a_login_in_an_address_of_a_host_is_neither_shown_nor_recorded(tmp_path):
    """A repository's file, a proxy of Docker, the words of a package manager that could not fetch."""
    run = Run.create("provision", {}, ["gpu1"], None, tmp_path)
    reader, keep = events.Reader({"h0": "gpu1"}), recorded(run, lambda _event: None)
    address = "https://ops:hunter2@mirror.example/rpm"
    daemon = {"proxies": {"http-proxy": address}}
    result = {
        "problems": [{"label": "x", "message": f"Status code: 401 for {address}/repodata/repomd.xml?token=hunter2"}],
        "diff": [
            {"before": "", "after": f"URIs: {address}\n", "after_header": "/etc/apt/sources.list.d/nodetune-x.sources"},
            {"before": daemon, "after": {}},
        ],
        "msg": f"repository cuda: {address}: check the address",
    }
    for status in ("ok", "failed"):
        raw = {"event": f"runner_on_{status}", "event_data": {"host": "h0", "task": "Repositories", "res": result}}
        event = reader.read(raw)
        keep(event)
        assert "hunter2" not in f"{event.result} {event.message}"
    kept = "".join(path.read_text() for path in run.folder.rglob("*") if path.is_file())
    assert "hunter2" not in kept
    assert kept.count("https://…@mirror.example/rpm") >= 2
