"""`nodetune verify` as a user meets it, on this very machine: real measurements, right exit codes, one line for a mistake."""

import json
import os
import re
import subprocess
import sys
import time

import jsonschema
import pytest

from nodetune.facts import machine
from nodetune.foundation import paths
from nodetune.verify import baseline
from nodetune.verify import document as verify_document
from tests.support.commandline import nodetune
from tests.support.verifying import busy

pytestmark = pytest.mark.slow
TURN = pytest.mark.xdist_group("verify-turn")
"""A host measures for one verify at a time."""


def in_process(*arguments, cwd=None, **env):
    """In a process of its own, which measures."""
    return subprocess.run(
        [sys.executable, "-m", "nodetune", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", **env},
        timeout=300,
        check=False,
    )


def verify(*arguments, cwd):
    """Measure for real, when it is our turn: a host measures for one verify at a time, and other tests measure here too."""
    end = time.monotonic() + 200
    while True:
        done = in_process("verify", *arguments, cwd=cwd)
        others = [path for path in cwd.glob("*.json") if "another verify is running" in path.read_text()]
        if time.monotonic() > end or not (others or "another verify is running" in done.stdout):
            return done
        time.sleep(1)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """This machine's memory, measured twice for real, with a baseline of it: the folder, and what was said."""
    folder = tmp_path_factory.mktemp("verify")
    kept = ("--save-baseline", "site.json", "--format", "json", "-o", "a.json")
    return folder, verify("--only", "memory", "--repeat", 2, *kept, cwd=folder)


@TURN
def test_this_machines_result_keeps_its_schema(measured):
    """Other tests may be at work here meanwhile: then there is no baseline, and that is said."""
    folder, done = measured
    document = json.loads((folder / "a.json").read_text())
    loaded = any(all(each["disturbed"]) for each in document["hosts"][0]["measurements"])
    assert (folder / "site.json").exists() != loaded
    assert done.returncode == (3 if loaded else 0)
    if loaded:
        assert done.stderr.startswith("site.json: not written: during memory ")
        assert re.search(r" measure again\n1 host measured: .*\nwritten to a\.json\n\Z", done.stderr)
    else:
        assert re.fullmatch(r"written to site\.json\n1 host measured: .*\nwritten to a\.json\n", done.stderr)
    schema = json.loads(paths.bundled("data/schemas").joinpath("verify.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    (host,) = document["hosts"]
    local = [each for each in host["measurements"] if each["metric"] == "local"]
    assert {each["subject"] for each in local} >= {"node0"}
    assert all(each["value"] > 0.1 and len(each["runs"]) == 2 for each in local), "GB/s of any machine"


@pytest.fixture(scope="module")
def better(measured):
    """A baseline of machines like this one that are a hundred times as fast."""
    folder, _ = measured
    (host,) = json.loads((folder / "a.json").read_text())["hosts"]
    on = machine.Machine(**host["machine"])
    lines = baseline.document((on, each) for each in verify_document.read(folder / "a.json").figures)
    faster = [{**each, "typical": 100 * each["typical"], "spread": 0.0} for each in lines]
    (folder / "better.json").write_text(json.dumps({"schema": baseline.SCHEMA, "figures": faster}))
    return folder


@TURN
def test_a_baseline_tells_what_is_slower(better):
    done = verify("--only", "memory", "--baseline", "better.json", cwd=better)
    if "no part is blamed" in done.stdout:
        pytest.skip("other tests are at work on this machine")
    assert done.returncode == 5, done.stderr
    assert "below    memory  node0" in done.stdout
    assert "baseline better.json" in " ".join(done.stdout.split())
    assert "next     nodetune verify --baseline better.json --only memory" in done.stdout


@TURN
def test_a_busy_machine_blames_no_part_and_keeps_no_baseline(better):
    """Real load: as many processes that compute as there are CPUs."""
    with busy(os.cpu_count()):
        done = verify("--only", "memory", "--baseline", "better.json", "--save-baseline", "loaded.json", cwd=better)
    told = " ".join(done.stdout.split())
    assert done.returncode == 3, told
    assert re.search(r"loaded memory others used \d+% of the CPUs \(", told)
    assert "memory: below target, but other processes used the host, so no part is blamed" in told
    assert "suspect" not in told
    assert "channels" not in told
    assert done.stderr.startswith("loaded.json: not written: during memory others used ")
    assert not (better / "loaded.json").exists()


@TURN
def test_two_results_with_too_few_runs_are_not_judged(measured):
    folder, _ = measured
    done = nodetune("verify", "--compare", "a.json", "a.json", cwd=folder)
    assert done.returncode == 3
    assert "too few runs" in done.stdout
    done = nodetune("verify", "--compare", "a.json", "a.json", "--format", "json", cwd=folder)
    assert json.loads(done.stdout)["schema"] == "nodetune.compare/1"


@TURN
@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="this machine has a GPU")
def test_a_missing_gpu_is_said_and_nothing_is_proved(tmp_path):
    done = verify("--only", "gpu_memory", cwd=tmp_path)
    assert done.returncode == 3
    assert "skip     gpu_memory  no libcuda.so.1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--suite", "no"], "'no' is not one of"),
        (["--only", "speed"], "unknown measurement speed: choose from clock, decompress, disk"),
        (["--env", "NCCL_DEBUG"], "--env NCCL_DEBUG: write NAME=VALUE"),
        (["--repeat", "0"], "0 is not in the range"),
        (["--network", "10.0.0.0/8"], "--network needs --pairs"),
        (["--pairs", "--network", "fe80::/64"], "--network fe80::/64: write an IPv4 network, such as 10.1.0.0/16"),
        (["--only", "memory", "-o", "none/a.json"], "none: the folder does not exist"),
        (["--only", "memory", "--save-baseline", "/proc/x"], "/proc/x: "),
        (["--baseline", "none.json"], "none.json: No such file"),
        (["--baseline", "text.json"], "text.json: not JSON: write one with nodetune verify --save-baseline FILE"),
        (["--compare", "text.json", "text.json"], "text.json: not JSON: save one with nodetune verify --format json"),
        (["--compare", "none.json", "text.json"], "none.json: No such file"),
        (["-i", "no-such-inventory/"], "no-such-inventory"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, text, tmp_path):
    (tmp_path / "text.json").write_text("no")
    done = nodetune("verify", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
