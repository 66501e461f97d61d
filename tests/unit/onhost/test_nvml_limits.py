"""What NVML needs of the process that asks."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nodetune.onhost import nvml_limits

CODE = "from nodetune.onhost import nvml_limits\nprint(nvml_limits.lacking())\nnvml_limits.lift()\nprint(nvml_limits.lacking())"


def told(limit, soft, hard, **user):
    """What lacks in a process with this limit, before and after it lifted its limits."""

    def before():
        resource.setrlimit(limit, (soft, hard))

    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{CODE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=before, **user)
    return done.stdout.splitlines()


def may_lift():
    """Whether root may lift hard limits here; a container may forbid it."""
    row = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    return bool(int(row.split()[1], 16) & 1 << 24)


def test_a_process_without_limits_lacks_nothing():
    assert told(resource.RLIMIT_NOFILE, 1024, 1024) == ["", ""]


@pytest.mark.skipif(not may_lift(), reason="lifting a hard limit takes CAP_SYS_RESOURCE")
@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        (resource.RLIMIT_NOFILE, 40, "this process may open only 40 files"),
        (resource.RLIMIT_AS, 200 << 20, "this process cannot get 256 MiB of memory"),
    ],
)
def test_root_makes_the_room_that_it_lacks(limit, most, words):
    assert told(limit, most, most) == [words, ""]


def test_too_few_files_and_too_little_memory_are_told():
    assert told(resource.RLIMIT_NOFILE, 40, 40)[0] == "this process may open only 40 files"
    assert told(resource.RLIMIT_AS, 200 << 20, 200 << 20)[0] == "this process cannot get 256 MiB of memory"


def test_others_get_what_their_hard_limit_allows():
    assert told(resource.RLIMIT_NOFILE, 40, 500)[1] == ""
    assert nvml_limits.FILES <= 500
