"""What version 0.1 left on hosts and disks is read by today's code: see tests/data/from-0.1/README.md."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nodetune.api import remedies
from nodetune.api.model import HostResult, Value
from nodetune.cli.main import group
from nodetune.facts import document, saved
from nodetune.facts.cache import FactCache
from nodetune.foundation.text import own_settings
from nodetune.guard.deploy import document as guard_document
from nodetune.guard.deploy import node_state
from nodetune.guard.deploy import policy as policy_writer
from nodetune.guard.deploy import status as guard_status
from nodetune.guard.node import policy, scontrol
from nodetune.hosts.target import Target
from nodetune.remediation.runs import earlier_runs, record
from nodetune.remediation.runs.record import DONE, Run
from nodetune.verify import baseline
from nodetune.verify import document as verify_document
from tests.support.documents import valid
from tests.support.fixing import built, files, finding_of

ROOT = Path(__file__).parents[2]
OLD = ROOT / "tests" / "data" / "from-0.1"
RUN = "20261101-120000-abcd"
sys.path.insert(0, str(ROOT / "playbooks" / "module_utils"))

from nodetune_host import core, journal  # noqa: E402
from nodetune_host.executor import Executor  # noqa: E402


def cli(*words):
    done = CliRunner().invoke(group, [*map(str, words)])
    assert not done.exception or isinstance(done.exception, SystemExit), done.exception
    return done.output


@pytest.fixture
def host(tmp_path):
    """The folder of a host as 0.1 left it, its journals under var."""
    place = tmp_path / "host"
    shutil.copytree(OLD / "host", place)
    path = place / "var" / "runs" / RUN / "journal.jsonl"
    path.write_text(path.read_text().replace("@ROOT@", str(place)).replace("@MACHINE@", journal.machine_id()))
    for each in place.rglob("etc/**/*"):
        os.chown(each, os.geteuid(), os.getegid())
    return place


def roll_back(host):
    result = core.Result()
    entries = journal.Journal(RUN, str(host / "var")).entries()
    core.revert(entries, Executor(journal.Journal("back-1", str(host / "var"))), result)
    return result.data()


@pytest.mark.skipif(os.geteuid() != 0, reason="the journal says that root owns the files")
def test_a_host_journal_rolls_its_changes_back(host):
    assert roll_back(host)["changed"]
    assert (host / "proc/swappiness").read_text().strip() == "60"
    assert not (host / "etc/sysctl.d").exists() or not list((host / "etc/sysctl.d").iterdir())
    assert (host / "etc/slurm/slurm.conf").read_text() == (
        "ClusterName=c\nPrologFlags=Contain\nNodeName=gpu1 Gres=gpu:8\n"
    )


OWN = {
    "/etc/nodetune/cpu.conf": {"governor": "performance", "idle_latency_us": 99},
    "/etc/udev/rules.d/99-zz-nodetune-block.rules": {
        "read_ahead_kb": {"md*": "4096"},
        "scheduler": {"nvme*n*": "none"},
    },
    "/etc/systemd/logind.conf.d/zz-nodetune.conf": {"Login": {"RemoveIPC": "no"}},
    "/etc/systemd/system/nodetune-cpu.service": {},
}


@pytest.mark.parametrize("path", OWN)
def test_the_settings_of_an_own_file_are_read(path):
    assert own_settings((OLD / f"own{path}").read_text()) == OWN[path]


def test_every_own_file_has_a_settings_line_that_parses():
    texts = {path: path.read_text() for path in OLD.glob("own/etc/**/*") if path.is_file()}
    assert len(texts) >= len(OWN)
    for path, text in texts.items():
        (line,) = [each for each in text.splitlines() if each.startswith("# settings: ")]
        assert own_settings(text) == json.loads(line.removeprefix("# settings: ")), path


def test_a_new_sysctl_joins_those_of_the_old_drop_in():
    path = "/etc/sysctl.d/zz-nodetune.conf"
    old = (OLD / f"own{path}").read_text()
    told = {"own.files": {"value": {path: old}}, "host.os": {"value": {"id": "ubuntu"}}}
    facts = document.from_data({"host": "gpu1", "facts": told})
    changes = built(facts, finding_of(remedies.sysctl("vm.panic_on_oom"), 0))
    written = files(changes)[path]
    kept = [line for line in old.splitlines() if " = " in line]
    assert len(kept) > 10
    assert set(kept) | {"vm.panic_on_oom = 0"} == {line for line in written.splitlines() if " = " in line}


def test_a_guard_policy_is_read_on_the_node(tmp_path):
    path = tmp_path / "guard.json"
    path.write_bytes((OLD / "guard.json").read_bytes())
    path.chmod(0o644)
    found = policy.load(str(path))
    assert (found.mode, found.act, found.total, found.step) == ("enforce", "slurm", 5, 3)
    written = policy_writer.read(path.read_text())
    assert [each["id"] for each in found.checks] == [each["id"] for each in written["checks"]]
    assert written["environment"] == {"OMP_NUM_THREADS": "8"}
    valid("guard-policy", path.read_text())


def test_guard_status_reads_what_a_guard_left():
    told = {
        f"file.{node_state.HEARTBEAT}": {"value": "1700000000 7 health: inconclusive\n"},
        f"file.{node_state.COUNT}": {"value": "2 times since boot, last in the prolog of job 7: because\n"},
    }
    read = HostResult("gpu1", "ok", facts=document.from_data({"host": "gpu1", "facts": told}))
    found = guard_status.of(scontrol.SlurmNode("NodeName=gpu1 State=IDLE"), read)
    text = guard_document.status([found])
    valid("slurm-status", text)
    guard = json.loads(text)["nodes"][0]["guard"]
    assert guard["last_run"] == {"time": 1700000000, "job": "7", "verdict": "health: blind", "inconclusive": True}
    assert guard["inconclusive_runs"] == guard["blind_runs"] == 2
    assert found.guard is not None and found.guard.last_run == (1700000000, "7", "health: inconclusive")


def test_saved_facts_are_judged_as_they_were():
    told = json.loads(cli("audit", "--facts", OLD / "facts/gpu1.json", "-s", "swappiness-high", "--format", "json"))
    (finding,) = told["hosts"][0]["findings"]
    before = json.loads((OLD / "audit.json").read_text())["hosts"][0]["findings"][1]
    assert [finding[key] for key in ("check", "status", "observed", "wanted", "fix")] == [
        before[key] for key in ("check", "status", "observed", "wanted", "fix")
    ]


def test_a_pull_folder_is_audited():
    told = json.loads(
        cli("audit", "--facts", OLD / "pull", "--max-age", "9999d", "-s", "swappiness-high", "--format", "json")
    )
    assert [(each["name"], each["state"]) for each in told["hosts"]] == [("gpu7", "ok")]
    read = saved.Rules(1e12).read(OLD / "pull" / "gpu7.json", "gpu7")
    assert read.facts is not None and read.facts.facts["sysctl.vm.swappiness"] == Value(60)


def test_a_cache_answers_for_its_host():
    found = FactCache(OLD / "cache", 1e12).known(Target("gpu1"), ["host.hostname", "sysctl.vm.swappiness"])
    assert found is not None and found.facts.facts["sysctl.vm.swappiness"] == Value(60)
    assert FactCache(OLD / "cache", 1e12).known(Target("gpu1"), ["sysctl.vm.overcommit_memory"]) is None


def test_an_audit_is_compared_with_itself_and_drawn_as_before(tmp_path):
    assert "no " in cli("diff", OLD / "audit.json", OLD / "audit.json").lower()
    page = tmp_path / "page.html"
    cli("audit", "--facts", OLD / "facts/gpu1.json", "--format", "html", "-o", page, "--previous", OLD / "audit.json")
    assert page.stat().st_size > 10_000


def test_a_verify_result_and_a_baseline_are_read():
    figures = verify_document.read(OLD / "verify.json").figures
    assert [(each.measurement, each.metric, len(each.runs)) for each in figures] == [
        ("memory", "local", 1),
        ("memory", "local_one_thread", 1),
    ]
    known = baseline.read(OLD / "baseline.json")
    assert known is not None


@pytest.fixture
def records(tmp_path):
    shutil.copytree(OLD / "runs", tmp_path / "runs")
    return tmp_path / "runs"


def test_a_run_is_listed_shown_and_found_to_be_over(records):
    assert RUN in cli("runs", "--runs", records)
    shown = cli("runs", "show", RUN, "--runs", records, "--diff")
    assert "60 → 10" in shown and "sudo refused" in shown and "+10" in shown
    valid("run-record", cli("runs", "show", RUN, "--runs", records, "--format", "json"))
    run = record.find("last", records)
    assert (run.state(), run.hosts) == (DONE, ["gpu1", "gpu2"])
    own = Run.create("apply", {}, ["gpu1"], None, records)
    assert earlier_runs.over(own) == {"gpu1": RUN, "gpu2": RUN}


def test_a_rollback_finds_changes_facts_and_entries_of_a_run(records):
    run = record.find(RUN[:8], records)
    assert run.changes("gpu1")[0]["changes"][0]["path"] == "/proc/sys/vm/swappiness"
    assert [entry.get("n") for entry in run.entries("gpu1")] == [None, 0, 0, 1]
    assert document.load(run.folder / "facts" / "gpu1.json").host == "gpu1"
