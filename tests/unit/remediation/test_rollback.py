"""What a rollback is guarded by and what it comes to; what Ansible says is given by the test."""

import errno
import io

import pytest

from nodetune.cli.main import group
from nodetune.cli.terminal import Terminal
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK
from nodetune.foundation.request import RequestError
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remediation import rollback
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.request import RollbackRequest
from nodetune.remediation.rollback import Undoing
from nodetune.remediation.runs import record
from nodetune.remediation.runs.record import Run

SWAP = {"group": "swap, idle node", "disruption": "idle node", "changes": []}
SYSCTL = {"group": "sysctl", "disruption": "none", "changes": []}
GUARD = {"gpu_idle": True, "drained": True}


def run_of(root, command, *changes):
    run = Run.create(command, {}, ["gpu1"], None, root)
    if changes:
        run.save_changes("gpu1", list(changes))
    run.finish(0)
    return run


@pytest.fixture
def sent(monkeypatch):
    """What each play is given."""
    found = []

    def play(_name, targets, variables, *_):
        found.append(variables)
        return {target.name: Outcome(target.name) for target in targets}

    monkeypatch.setattr(rollback.play, "play", play)
    return found


def take_back(of, root):
    run = Run.create("rollback", {}, ["gpu1"], None, root)
    undoing = Undoing(of, [Target("gpu1")], ConnectionOptions(), RollbackRequest(of.id), {})
    undoing.revert(run, lambda _event: None)
    run.finish(0)
    return run


def test_undoing_a_rollback_needs_the_node_as_free_as_its_run(tmp_path, sent):
    of = run_of(tmp_path, "apply", SYSCTL, SWAP)
    for _ in range(3):
        of = take_back(of, tmp_path)
    guards = [(variables["gpu1"]["nodetune_guard"], variables["gpu1"]["nodetune_guarded"]) for variables in sent]
    assert guards == [(GUARD, ["swap, idle node"])] * 3


def test_what_disturbed_nothing_is_undone_on_any_node(tmp_path, sent):
    take_back(take_back(run_of(tmp_path, "apply", SYSCTL), tmp_path), tmp_path)
    assert ["nodetune_guard" in variables["gpu1"] for variables in sent] == [False, False]


def test_of_a_rollback_that_kept_no_changes_any_may_disturb(tmp_path, sent):
    take_back(run_of(tmp_path, "rollback"), tmp_path)
    assert sent[0]["gpu1"]["nodetune_guard"] == GUARD
    assert "nodetune_guarded" not in sent[0]["gpu1"]


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_text("[{")])
def test_where_the_changes_of_a_run_are_lost_any_may_disturb(tmp_path, sent, damage):
    of = run_of(tmp_path, "apply", SYSCTL)
    of.add_entries("gpu1", [{"n": 0}])
    damage(of.folder / "changes/gpu1.json")
    take_back(of, tmp_path)
    assert sent[0]["gpu1"]["nodetune_guard"] == GUARD
    assert "nodetune_guarded" not in sent[0]["gpu1"]


class Nodes:
    """Answers plays as nodes do: by node, what each play comes to there. Keeps (play, nodes) in their order."""

    def __init__(self, **answers):
        self.answers, self.played = answers, []

    def play(self, name, targets, _variables, *_):
        self.played.append((name, [target.name for target in targets]))
        return {target.name: self.answers.get(f"{target.name}_{name}") or worked(target.name) for target in targets}


def worked(node):
    return Outcome(node, results=(Event(node, "Task", changed=True),))


def roll_back_drained(monkeypatch, root, nodes, **disruptions):
    """Roll back a run on nodes with --drain slurm. Return the outcomes and the record."""
    monkeypatch.setattr(rollback.play, "play", nodes.play)
    of = Run.create("apply", {}, [*disruptions], None, root)
    for node, changes in disruptions.items():
        of.save_changes(node, [changes])
    of.finish(0)
    request = RollbackRequest(of.id, drain="slurm", runs_folder=root)
    undoing = Undoing(of, [Target(node) for node in disruptions], ConnectionOptions(), request, {})
    run_id, outcomes = undoing.carry_out(Terminal())
    return outcomes, record.find(run_id, root)


def test_only_nodes_where_undoing_disturbs_are_drained_and_given_back(monkeypatch, tmp_path):
    nodes = Nodes()
    outcomes, run = roll_back_drained(monkeypatch, tmp_path, nodes, gpu1=SWAP, gpu2=SYSCTL)
    assert nodes.played == [("drain", ["gpu1"]), ("revert", ["gpu1", "gpu2"]), ("resume", ["gpu1"])]
    assert rollback.exit_code(outcomes) == run.about["exit"] == OK


def test_a_node_whose_jobs_do_not_end_is_left_as_it_is(monkeypatch, tmp_path):
    busy = Event("gpu1", "Drain", changed=True, result={"busy": "job 7 of ann"})
    nodes = Nodes(gpu1_drain=Outcome("gpu1", "failed", "no", (busy,)))
    outcomes, run = roll_back_drained(monkeypatch, tmp_path, nodes, gpu1=SWAP, gpu2=SYSCTL)
    assert nodes.played == [("drain", ["gpu1"]), ("revert", ["gpu2"]), ("resume", ["gpu1"])]
    assert (outcomes["gpu1"].state, outcomes["gpu1"].message) == ("failed", "job 7 of ann")
    assert run.about["undone"] == ["gpu2"]


def test_a_node_that_stays_drained_is_named_and_counts_as_rolled_back(monkeypatch, tmp_path):
    foreign = Outcome("gpu1", results=(Event("gpu1", "Resume"),))
    outcomes, run = roll_back_drained(monkeypatch, tmp_path, Nodes(gpu1_resume=foreign), gpu1=SWAP)
    (problem,) = outcomes["gpu1"].gathered("problems")
    assert (problem["label"], "someone else has drained it" in problem["message"]) == ("left drained", True)
    assert (run.about["undone"], run.about["exit"]) == (["gpu1"], END_STATE_MISSED)


def test_after_an_interruption_what_was_drained_stays_drained(monkeypatch, tmp_path):
    nodes = Nodes(gpu1_revert=Outcome("gpu1", "interrupted", "stopped by Ctrl-C"))
    outcomes, _ = roll_back_drained(monkeypatch, tmp_path, nodes, gpu1=SWAP)
    assert [name for name, _ in nodes.played] == ["drain", "revert"]
    assert [each["label"] for each in outcomes["gpu1"].gathered("problems")] == ["left drained"]


def test_cordons_need_the_clusters_transport(tmp_path, monkeypatch):
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("all: {hosts: {gpu1: {}}}\n")
    run = Run.create("apply", {}, ["gpu1"], str(hosts), tmp_path / "runs")
    run.finish(0)
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "runs"))
    with pytest.raises(RequestError, match="--drain kubernetes needs --transport kubernetes"):
        main(["rollback", run.id, "--drain", "kubernetes"])


REFUSED = Outcome(
    "a", results=(Event("a", "Revert", result={"refused": [{"label": "x", "message": "changed since"}]}),)
)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([Outcome("a")], OK),
        ([Outcome("a"), Outcome("b", "unreachable", "no route")], INCOMPLETE),
        ([Outcome("a", "failed", "no space"), Outcome("b", "unreachable", "no route")], END_STATE_MISSED),
        ([REFUSED, Outcome("b", "unreachable", "no route")], END_STATE_MISSED),
    ],
)
def test_the_highest_exit_code_that_holds_wins(outcomes, code):
    told = {outcome.host: outcome for outcome in outcomes}
    assert rollback.exit_code(told) == code


def test_hosts_gone_from_the_inventory_are_named_as_failures(tmp_path, sent, monkeypatch, capsys):
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("all: {hosts: {gpu1: {}, gpu3: {}}}\n")
    run = Run.create("apply", {}, ["gpu1", "gpu2"], str(hosts), tmp_path / "runs")
    run.finish(0)
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "runs"))
    words = ["rollback", run.id, "--yes"]
    assert main(words) == INCOMPLETE
    assert "gpu2" in capsys.readouterr().out
    assert main([*words, "--limit", "gpu1"]) == OK
    assert [list(variables) for variables in sent] == [["gpu1"], ["gpu1"]]


def main(words):
    return group.main(words, prog_name="nodetune", standalone_mode=False)


class Full(io.StringIO):
    """Output that goes to a full disk."""

    def write(self, _text):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_output_that_is_cut_off_does_not_change_the_exit(tmp_path, sent, monkeypatch):
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("all: {hosts: {gpu1: {}}}\n")
    run = Run.create("apply", {}, ["gpu1"], str(hosts), tmp_path / "runs")
    run.finish(0)
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("sys.stdout", Full())
    with pytest.raises(OSError, match="No space left"):
        main(["rollback", run.id, "--yes"])
    assert record.find("last").about["exit"] == OK
