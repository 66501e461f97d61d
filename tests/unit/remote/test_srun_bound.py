"""A task of a step that prints without end is cut off; the others of its step are heard."""

import shlex

from nodetune.onhost import protocol
from nodetune.remote.slurm import srun

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
