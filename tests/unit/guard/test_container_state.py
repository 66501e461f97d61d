"""What the probes of the kubelet find of the containers of the guard's pod."""

import json
import os
import subprocess
import time

import pytest

from nodetune.guard.node.container_state import OLDEST_SECONDS
from tests.unit.guard.install import PYTHON


def probed(program, folder, word):
    command = [PYTHON, "-I", "-S", str(program / "nodetune/guard/node/__main__.py"), word, "--result", str(folder)]
    return subprocess.run(command, env={}, capture_output=True, text=True).returncode


@pytest.mark.parametrize(
    ("verdict", "age", "alive", "ready"),
    [
        ("pass", 0, True, True),
        ("fail", 0, True, True),
        ("inconclusive", 0, True, False),
        ("pass", OLDEST_SECONDS + 60, False, False),
        (None, 0, True, False),
    ],
)
def test_a_container_lives_while_it_works_and_is_ready_while_it_judges(program, tmp_path, verdict, age, alive, ready):
    file = tmp_path / "health.json"
    file.write_text(json.dumps({"verdict": verdict, "reason": "r"}))
    then = time.time() - age
    os.utime(file, (then, then))
    assert [probed(program, tmp_path, word) == 0 for word in ("alive", "ready")] == [alive, ready]


def test_a_container_that_left_nothing_is_neither(program, tmp_path):
    assert all(probed(program, tmp_path, word) for word in ("alive", "ready"))
