"""The guard's last verdict for node-problem-detector: one line, and 0 or 1 only."""

import json
import subprocess
import time

import pytest

from nodetune.foundation import templates
from nodetune.guard.node import health, records
from tests.unit.guard.install import PYTHON

FAIL = {
    "verdict": "fail",
    "reason": "nodetune: gpu-lost: GPU3 0000:61:00.0: NVML: GPU is lost, and more of it — " + "x" * 80,
}
PASS = {"verdict": "pass", "reason": ""}
BLIND = {"verdict": "inconclusive", "reason": "out of time"}


class Detector:
    def __init__(self, node):
        self.node = node
        node.run_folder.mkdir()
        self.script(PYTHON)

    def script(self, python):
        values = {"python": python, "program": str(self.node.program), "run": str(self.node.run_folder)}
        more = {"policy": str(self.node.policy), "seconds": 6, "home": str(self.node.folder)}
        self.path = self.node.folder / "check"
        self.path.write_text(templates.render("guard-check.sh.j2", **values, **more))

    def after(self, *results, age=0):
        """What it says once the guard had these results."""
        for each in results:
            health.keep(str(self.node.run_folder), {**each, "time": int(time.time()) - age})
        ended = subprocess.run(["sh", self.path, "--detector"], capture_output=True, text=True, env={})
        return ended.returncode, ended.stdout.removesuffix("\n")


@pytest.fixture
def detector(bare):
    return Detector(bare)


def test_a_problem_is_one_line_of_ascii_of_at_most_80_characters(detector):
    code, line = detector.after(FAIL)
    assert code == 1
    assert line.startswith("gpu-lost: GPU3 0000:61:00.0: NVML: GPU is lost")
    assert line.isascii()
    assert len(line) == 80


def test_no_verdict_keeps_the_last_one(detector):
    assert detector.after()[0] == 0
    assert detector.after(BLIND) == (0, "inconclusive: out of time")
    assert detector.after(FAIL, BLIND)[0] == 1
    assert detector.after(PASS, BLIND)[0] == 0
    assert detector.after(FAIL, PASS) == (0, "all gating checks pass")


def test_a_guard_that_stopped_keeps_the_last_verdict(detector):
    assert detector.after(FAIL, age=3600)[0] == 1
    assert detector.after(PASS, age=3600) == (0, "the guard last checked 60 minutes ago: is its timer active?")


def test_an_observed_or_switched_off_guard_reports_no_problem(detector):
    detector.node.write_policy(mode="observe")
    code, line = detector.after(FAIL)
    assert (code, line[:24]) == (0, "observed only: gpu-lost:")
    detector.node.write_policy()
    (detector.node.folder / "off.policy").touch()
    assert detector.after(FAIL)[0] == 0


def test_an_interpreter_that_fails_is_no_problem_of_the_node(detector):
    detector.after(FAIL)
    detector.script("/bin/false")
    assert detector.after() == (0, "inconclusive: its program ended with 1")
    detector.script("/no/python")
    assert detector.after()[0] == 0
    records.write(str(detector.node.run_folder / "verdict.json"), json.dumps([1]))
    detector.script(PYTHON)
    assert detector.after()[0] == 1
