"""`nodetune readmit` over a real Slurm: what it measures on a repaired node, what it refuses, and that the node comes back."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import guarded
import pytest

from tests.support import cuda_library, documents

pytestmark = [
    pytest.mark.slow,
    pytest.mark.full,  # it measures for ten seconds, twice
    pytest.mark.skipif(bool(guarded.missing()), reason=guarded.missing()),
]
MARK = "/run/nodetune-mark"
OWN = {
    "id": "site-marked",
    "area": "site",
    "severity": "critical",
    "title": "The node is marked",
    "accept": {"equals": "well"},
    "about": "node",
    "facts": [f"file.{MARK}"],
    "fact": f"file.{MARK}",
}


@pytest.fixture(scope="module")
def cluster(parts, tmp_path_factory):
    """Nodes whose figures are those of the substitute libcuda."""
    libraries = cuda_library.built(tmp_path_factory.mktemp("cuda"))
    with guarded.Guarded(parts, nodes=2, act="drain") as started:
        started.libraries = libraries
        for node in started.nodes:
            started.write_policy(node, lambda data: data.update(checks=[OWN]))
        yield started


def mark(cluster, node, word):
    (cluster.of_node(node) / MARK[1:]).write_text(f"{word}\n")


def drain_by_guard(cluster, node):
    mark(cluster, node, "sick")
    assert cluster.call("srun", "-w", node, "true")[0]
    cluster.wait_until(lambda: "site-marked" in cluster.reason(node), f"{node} is drained by the guard")
    mark(cluster, node, "well")


def readmit(cluster, node, *words, libraries=None):
    """(exit code, what it said, its evidence by the names of the files)."""
    place = cluster.folder / "proof.tar.gz"
    place.unlink(missing_ok=True)
    given = ["--transport", "local", "--only", "gpu_load", "--load-seconds", "10", "--with", "none", "--yes"]
    command = [sys.executable, "-m", "nodetune", "readmit", node, *given, "--evidence", str(place), *words]
    env = {**cluster.environment, "LD_LIBRARY_PATH": str(libraries or cluster.libraries), "STAND_IN_GPUS": "2"}
    done = subprocess.run(
        [*cluster.inside(node), *command], env=env, capture_output=True, text=True, timeout=300, cwd=cluster.folder
    )
    return done.returncode, done.stdout + done.stderr, unpacked(place) if place.exists() else {}


def unpacked(place):
    with tarfile.open(place) as archive:
        return {Path(each.name).name: archive.extractfile(each).read() for each in archive}


def test_a_repaired_node_comes_back_once_its_gpus_prove_it(cluster):
    drain_by_guard(cluster, "n01")
    code, said, evidence = readmit(cluster, "n01", libraries="/nowhere")
    assert (code, "n01 stays out of service. Missing:\n  verify: gpu_load was not measured: " in said) == (3, True), (
        said
    )
    assert "DRAIN" in cluster.state("n01")
    key, before = cluster.folder / "key", cluster.folder / "before.json"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    facts = json.loads(evidence["facts.json"])
    facts["facts"]["gpu.serial"]["each"]["GPU0"] = {"value": "1650000000001"}
    before.write_text(json.dumps(facts))
    code, said, evidence = readmit(cluster, "n01", "--before", str(before), "--key", str(key))
    assert (code, "n01 is back in service" in said) == (0, True), said
    assert "1 part exchanged: GPU GPU0: 1650000000001 → " in said
    assert "DRAIN" not in cluster.state("n01")
    told = documents.valid_by_its_own_word(evidence["readmit.json"].decode())
    assert (told["back"], told["missing"]) == (True, [])
    assert evidence["SHA256SUMS.sig"].startswith(b"-----BEGIN SSH SIGNATURE-----")
    assert {"facts-before.json", "facts.json", "facts-after-load.json", "verify.json", "audit.json"} <= set(evidence)


def test_the_drain_of_a_person_stays(cluster):
    cluster.run("scontrol", "update", "NodeName=n02", "State=DRAIN", "Reason=bad DIMM, ticket 4711")
    code, said, evidence = readmit(cluster, "n02")
    assert (code, "the drain is not the guard's (IDLE+DRAIN: bad DIMM, ticket 4711)" in said) == (4, True), said
    assert cluster.reason("n02") == "bad DIMM, ticket 4711"
    assert json.loads(evidence["readmit.json"])["back"] is False


def test_a_dry_run_says_what_would_be_done(cluster):
    code, said, evidence = readmit(cluster, "n02", "--dry-run")
    assert (code, evidence) == (0, {}), said
    assert "resume       not the guard's (IDLE+DRAIN: bad DIMM, ticket 4711)\n" in said


def test_a_node_in_service_is_refused(cluster):
    code, said, _ = readmit(cluster, "n01")
    assert (code, "n01 is in service (IDLE): nothing to readmit" in said) == (2, True), said
