"""`nodetune guard status` and `resume` over a real Slurm and its nodes."""

import json
import subprocess
import sys

import guarded
import pytest

from tests.support import documents

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(guarded.missing()), reason=guarded.missing()),
]
LOST = "nodetune: gpu-lost: GPU0: NVML: GPU is lost"


@pytest.fixture(scope="module")
def cluster(parts):
    with guarded.Guarded(parts, nodes=3, act="drain") as started:
        write_inventory(started)
        yield started


@pytest.fixture(autouse=True)
def mended(cluster):
    cluster.mend()


def write_inventory(cluster):
    """Each node is reached by a Python that lives where the node does. (A single local host is read without any.)"""
    hosts = {}
    for node in cluster.nodes:
        python = cluster.folder / f"python-{node}"
        python.write_text(f'#!/bin/sh\nexec {" ".join(cluster.inside(node))} {guarded.PYTHON} "$@"\n')
        python.chmod(0o755)
        hosts[node] = {"ansible_connection": "local", "ansible_python_interpreter": str(python)}
    (cluster.folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))


def nodetune(cluster, *words):
    command = [sys.executable, "-m", "nodetune", "guard", *words, "-i", str(cluster.folder / "hosts.yml")]
    done = subprocess.run(command, env=cluster.environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def drain_by_slurm(cluster, node):
    """The guard holds a job and leaves the drain to Slurm; no health check has written its reason yet."""
    cluster.write_policy(node, act="slurm")
    cluster.control(node, "lost@0=1")
    assert cluster.call("srun", "--gres=gpu:1", "-w", node, "true")[0]
    cluster.wait_until(lambda: cluster.reason(node) == "Prolog error", f"{node} is drained by Slurm")
    cluster.write_policy(node)


def row(done, node):
    """The line of a node in what status said."""
    code, said = done
    assert code == 0, said
    return next(line for line in said.splitlines() if line.startswith(node))


def health_check(cluster, node):
    environment = {"SLURMD_NODENAME": node, "SLURM_CONF": str(cluster.conf)}
    cluster.call(*cluster.inside(node), f"{guarded.HOME}/healthcheck", environment=environment)


def drain_by_guard(cluster, node):
    cluster.control(node, "lost@0=1")
    assert cluster.call("srun", "--gres=gpu:1", "-w", node, "true")[0], (
        "srun says so; by which code depends on how far it had come"
    )
    cluster.wait_until(lambda: cluster.reason(node) == LOST, f"{node} is drained by the guard")


def drain_by_hand(cluster, node, reason):
    cluster.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")


def test_resume_resumes_only_fixed_nodes_that_the_guard_drained(cluster):
    drain_by_guard(cluster, "n01")
    drain_by_hand(cluster, "n02", "bad DIMM, ticket 4711")
    drain_by_hand(cluster, "n03", LOST)
    code, said = nodetune(cluster, "resume", "--yes")
    assert code == 1
    assert "n01: stays drained: gpu-lost: GPU0: NVML: GPU is lost (by its installed policy, profile training)" in said
    assert "; next: nodetune explain gpu-lost" in said
    assert "n03: stays drained: the node has no record of this drain" in said
    assert "n02" not in said
    cluster.control("n01")
    code, said = nodetune(cluster, "resume", "--dry-run")
    assert (code, "n01: would be resumed" in said) == (0, True), said
    assert said.endswith("dry run: 1 of 2 nodes would be resumed. Nothing was changed.\n")
    assert "DRAIN" in cluster.state("n01")
    code, said = nodetune(cluster, "resume", "--dry-run", "--format", "json")
    told = documents.valid_by_its_own_word(said)
    assert [(each["name"], each["state"]) for each in told["nodes"]] == [("n01", "may come back"), ("n03", "stays")]
    code, said = nodetune(cluster, "resume")
    assert (code, "confirmation needs a terminal: use --yes" in said) == (2, True), said
    assert "DRAIN" in cluster.state("n01")
    code, said = nodetune(cluster, "resume", "--yes")
    assert (code, "n01: back in service" in said) == (0, True), said
    assert [("DRAIN" in cluster.state(node)) for node in cluster.nodes] == [False, True, True]
    assert cluster.reason("n02") == "bad DIMM, ticket 4711"


def test_a_drain_is_still_ours_after_a_reboot_has_emptied_run(cluster):
    drain_by_guard(cluster, "n01")
    (cluster.of_node("n01") / guarded.RUN / "drained.json").unlink()
    cluster.control("n01")
    drain_by_hand(cluster, "n02", LOST)
    code, said = nodetune(cluster, "resume", "--yes", "n01", "n02")
    assert (code, "n01: back in service" in said) == (0, True), said


def test_a_reason_that_somebody_took_over_is_theirs(cluster):
    drain_by_guard(cluster, "n01")
    cluster.run("scontrol", "update", "NodeName=n01", "Reason=vendor is coming on Monday")
    cluster.control("n01")
    assert nodetune(cluster, "resume", "--yes", "n01") == (0, "no node is drained by the guard\n")
    assert cluster.reason("n01") == "vendor is coming on Monday"


def test_status_shows_whose_drains_and_which_guards_there_are(cluster):
    drain_by_guard(cluster, "n01")
    drain_by_hand(cluster, "n02", "bad DIMM")
    cluster.write_policy("n03", lambda data: data.pop("mode"))
    cluster.call("srun", "--gres=gpu:1", "-w", "n03", "true")
    cluster.wait_until(lambda: cluster.state("n03") == "IDLE", "the epilog has run")
    cluster.write_policy("n03")
    code, said = nodetune(cluster, "status")
    rows = {line.split()[0]: line for line in said.splitlines()}
    assert code == 0, said
    assert f"ours: {LOST}" in rows["n01"]
    assert "enforce, act drain" in rows["n01"]
    assert "s ago" in rows["n01"]
    assert "not ours: bad DIMM" in rows["n02"]
    assert cluster.inconclusive("n03") == 2, "prolog and epilog"
    assert rows["n03"].split()[-2:] == ["2", "-"]
    code, said = nodetune(cluster, "status", "--format", "json")
    nodes = {each["name"]: each for each in documents.valid_by_its_own_word(said)["nodes"]}
    assert [nodes[name]["guard"]["drain_is_ours"] for name in cluster.nodes] == [True, False, False]
    assert nodes["n02"]["reason"] == "bad DIMM"
    assert nodes["n03"]["guard"]["inconclusive_runs"] == nodes["n03"]["guard"]["blind_runs"] == 2


def test_a_hold_is_the_guards_before_its_reason_is_written(cluster):
    drain_by_slurm(cluster, "n01")
    drain_by_hand(cluster, "n02", "Prolog error")
    job = json.loads(cluster.left("n01", "held.json"))["job"]
    done = nodetune(cluster, "status")
    awaits = f"  ours: Prolog error (job {job} was held; the next health check writes the reason): {LOST}"
    assert row(done, "n01").endswith(awaits)
    assert row(done, "n02").endswith("  not ours: Prolog error")
    code, said = nodetune(cluster, "status", "--format", "json")
    first, second, _ = documents.valid_by_its_own_word(said)["nodes"]
    assert (first["reason"], first["guard"]["drain_is_ours"]) == ("Prolog error", True)
    assert first["guard"]["held"] == {"job": job, "reason": LOST}
    assert (second["guard"]["drain_is_ours"], second["guard"]["held"]) == (False, None)
    code, said = nodetune(cluster, "resume", "--yes")
    assert code == 1
    assert "n01: stays drained: gpu-lost: GPU0: NVML: GPU is lost (by its installed policy" in said
    assert "n02: stays drained: the node has no record of this drain (Prolog error)" in said
    cluster.control("n01")
    code, said = nodetune(cluster, "resume", "--yes")
    assert (code, "n01: back in service" in said) == (0, True), said
    assert "DRAIN" in cluster.state("n02")


def test_a_drain_that_got_its_reason_is_no_more_awaiting_one(cluster):
    drain_by_slurm(cluster, "n01")
    health_check(cluster, "n01")
    assert row(nodetune(cluster, "status"), "n01").endswith(f"  ours: {LOST}")
    cluster.run("scontrol", "update", "NodeName=n01", "State=RESUME")
    drain_by_hand(cluster, "n01", "Prolog error")  # within the two minutes: another prolog's
    assert row(nodetune(cluster, "status"), "n01").endswith("  not ours: Prolog error")


def test_on_the_node_itself_status_and_resume_need_no_login(cluster):
    drain_by_guard(cluster, "n01")
    words = [*cluster.inside("n01"), sys.executable, "-m", "nodetune", "guard"]
    code, said = cluster.call(*words, "status", "n01")
    assert row((code, said), "n01").endswith(f"  ours: {LOST}")
    cluster.control("n01")
    code, said = cluster.call(*words, "resume", "--yes", "n01")
    assert (code, "n01: back in service" in said) == (0, True), said


def test_a_node_that_slurm_does_not_know_is_one_line(cluster):
    code, said = nodetune(cluster, "status", "n[01-07]")
    assert (code, said) == (2, "nodetune: Slurm has no node n[04-07]\n")


def test_a_node_that_cannot_be_reached_stays_as_it_is(cluster):
    drain_by_guard(cluster, "n01")
    cluster.control("n01")
    drain_by_hand(cluster, "n02", LOST)
    python = cluster.folder / "python-n01"
    kept = python.read_text()
    python.write_text("#!/bin/sh\nexit 127\n")
    try:
        code, said = nodetune(cluster, "resume", "--yes")
        assert (code, "n01: stays drained: not reached" in said) == (3, True), said
    finally:
        python.write_text(kept)


def test_resume_judges_a_node_by_its_own_policy(cluster):
    """The policy gates on nothing but a file that the profile does not know of."""
    mark = "/run/nodetune-mark"
    own = {
        "id": "site-marked",
        "area": "site",
        "severity": "critical",
        "title": "Somebody marked the node",
        "accept": {"equals": "well"},
        "about": "node",
        "facts": [f"file.{mark}"],
        "fact": f"file.{mark}",
    }
    for node in ("n01", "n02"):
        cluster.write_policy(node, lambda data: data.update(checks=[own]))
        (cluster.of_node(node) / mark[1:]).write_text("sick\n")
        assert cluster.call("srun", "-w", node, "true")[0]
        cluster.wait_until(lambda node=node: "site-marked" in cluster.reason(node), f"{node} is drained")
    (cluster.of_node("n01") / mark[1:]).write_text("well\n")
    cluster.control("n01", "lost@0=1")  # which this policy does not gate on
    code, said = nodetune(cluster, "resume", "--yes", "n01", "n02")
    assert (code, "n01: back in service" in said) == (1, True), said
    assert "n02: stays drained: site-marked: sick" in said
    for node in ("n01", "n02"):
        cluster.write_policy(node)


def test_a_policy_that_cannot_be_used_keeps_its_node_drained(cluster):
    drain_by_guard(cluster, "n01")
    cluster.control("n01")
    drain_by_hand(cluster, "n02", LOST)
    cluster.write_policy("n01", lambda data: data.pop("mode"))
    try:
        code, said = nodetune(cluster, "resume", "--yes")
        assert (code, "n01: stays drained: /etc/nodetune/guard.json cannot be used: mode is missing" in said) == (
            3,
            True,
        )
    finally:
        cluster.write_policy("n01")
