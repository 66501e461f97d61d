"""A task of a step that prints without end is cut off; the others of its step are heard."""

import os
import shlex

import pytest

from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target
from nodetune.onhost import layout, protocol
from nodetune.remote import pool
from nodetune.remote.slurm import probe, srun

NONCE = "abc"


class Step(srun.SrunStep):
    def hear(self, number, found):
        self.over(number)
        yield number, found

    def lost(self, number, problem):
        yield number, (problem.state, problem.message)


LINE = "0: " + "y" * 1000


def test_a_task_that_prints_without_end_costs_no_other():
    said = protocol.encode_event({"end": 1}, NONCE).decode()
    script = f"yes '{LINE}' | head -n 40000; printf %s {shlex.quote('1: ' + said)}; exec yes '{LINE}'"
    step = Step(srun.start(["sh", "-c", script], {}), ["a", "b"], NONCE, protocol.event)
    found = dict(step.events(60))
    srun.pipes.kill(step._process)
    step.close()
    assert found[0][0] == "too much output"
    assert found[1] == {"end": 1}


def test_a_task_of_noise_is_cut_off_by_name():
    step = Step(srun.start(["yes", LINE], {}), ["a"], NONCE, protocol.event)
    ((_, (state, message)),) = step.events(60)
    srun.pipes.kill(step._process)
    step.close()
    assert (state, "16 MiB" in message) == ("too much output", True)


@pytest.mark.parametrize("status", [-9, 137, -15])
def test_what_srun_cut_off_is_tried_again_if_it_says_why_later(monkeypatch, status):
    """The relay kills its probe when srun ends the step; its word may be read before srun's."""
    killed = protocol.encode(b"x%d" % status, NONCE).decode()
    script = f"echo {shlex.quote('0: ' + killed)}; sleep 1; echo 'srun: error: Task launch for 1.0 failed on node b: gone' >&2"
    plan = probe._Plan([Target("a"), Target("b")], b"", NONCE, SessionOptions(seconds=30))
    step = probe.ProbeStep(srun.start(["sh", "-c", script], {}), plan, ["a", "b"])
    monkeypatch.setattr(probe, "_outside", lambda *_: step)
    monkeypatch.setattr(probe.sinfo, "states", dict)
    monkeypatch.setattr(probe.sinfo, "not_to_be_had", lambda *_: {})
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    found = {
        target.name: why for target, why, _ in probe._collect([Target("a"), Target("b")], b"", NONCE, SessionOptions())
    }
    assert isinstance(found["a"], probe._CutError)
    assert (found["b"].state, isinstance(found["b"], probe._CutError)) == ("unreachable", False)


def printed(number, relayed):
    """The lines of a task, as srun labels them."""
    return "".join(f"{number}: {line}\n" for line in protocol.encode(relayed, NONCE).decode().splitlines())


def answer(facts):
    """What the relay of a node sends for an answer with these facts."""
    told = layout.text({"schema": "nodetune.facts/1", "facts": facts}).encode()
    return b"o" + protocol.encode(told, NONCE)


def probed(tmp_path, printed_by_srun, hosts, asked=None):
    (tmp_path / "printed").write_text(printed_by_srun)
    plan = probe._Plan([Target(name) for name in hosts], b"", NONCE, SessionOptions(seconds=30), asked)
    step = probe.ProbeStep(srun.start(["cat", str(tmp_path / "printed")], {}), plan, hosts)
    found = {hosts[number]: each for number, each in step.events(30)}
    step.close()
    return found, plan


def test_nodes_that_send_much_together_are_cut_off_not_the_others(monkeypatch, tmp_path):
    monkeypatch.setattr(pool, "WAITING_BYTES", 100_000)
    monkeypatch.setattr(pool, "ALWAYS_BYTES", 20_000)
    liars = [f"liar{number}" for number in range(10)]
    noise = os.urandom(30_000)  # cannot be packed; the last line of each answer is missing
    said = "".join(printed(number, noise).rpartition(f"{number}: ")[0] for number in range(len(liars)))
    honest = printed(len(liars), answer({"host.arch": {"value": "x86_64"}}))
    found, plan = probed(tmp_path, said + honest, [*liars, "honest"])
    assert found.pop("honest").facts["host.arch"].value == "x86_64"
    cut = [name for name, why in found.items() if why.state == "too much output"]
    assert len(cut) == 8, "two fill what may wait"
    assert "the answers of all hosts together took" in found[cut[0]].message
    assert plan.waiting._bytes == {}, "what has ended waits no more"


def test_facts_of_a_node_that_nobody_asked_for_are_dropped(tmp_path):
    facts = {"host.arch": {"value": "x86_64"}, **{f"host.x{number}": {"value": 1} for number in range(5000)}}
    found, _ = probed(tmp_path, printed(0, answer(facts)), ["a"], {"host": ["arch"]})
    assert set(found["a"].facts) == {"host.arch"}
