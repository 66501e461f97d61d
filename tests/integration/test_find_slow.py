"""The slow part of real hosts, planted and named: network namespaces behind switches, over SSH."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
from spaces import RATE, Spaces, missing

ROOT = Path(__file__).parents[2]
STARTER = (
    'case "$*" in *fdopen*) for code; do :; done; exec {python} -I -S -c "$wrong" "$code";; esac; exec {python} "$@"'
)
"""Only where it measures: the last word is the program."""
WRONG_SUMS = """
import sys, zlib
right = zlib.crc32
zlib.crc32 = lambda data, *more: right(data, *more) ^ (len(data) > 100000)
exec(sys.argv[1])
"""
DIES = (
    'for turn in $(seq 200); do pkill -{signal} -x nodetune:rails; sleep 0.2; done >/dev/null 2>&1 & exec {python} "$@"'
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.full]


@pytest.fixture
def spaces():
    """spaces(hosts, a leaf, groups): hosts that are reached over SSH."""
    if os.getuid() != 0:
        pytest.skip("network namespaces take root")
    if why := missing():
        pytest.skip(f"no network namespaces with rate limits here: {why}")
    made, folders = [], []

    def make(count, leaf, **groups):
        folder = Path(tempfile.mkdtemp(prefix="nodetune-farm-"))
        folder.chmod(0o755)
        folders.append(folder)
        made.append(Spaces(folder, count, leaf))
        made[-1].build(groups)
        return made[-1]

    yield make
    for each in made:
        each.close()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def inventory_of(hosts, pythons=None):
    """The inventory that reaches these hosts."""
    inventory = hosts.farm.folder / "hosts.ini"
    lines = []
    for number, name in enumerate(hosts.names):
        python = (pythons or {}).get(name, "python3")
        lines.append(
            f"{name} ansible_host={hosts.address(number)} ansible_port={hosts.farm.port} ansible_user={hosts.farm.user} "
            f"ansible_ssh_common_args='-F {hosts.farm.config}' ansible_python_interpreter={python}"
        )
    inventory.write_text("\n".join(lines) + "\n")
    return inventory


def searched(hosts, *options, pythons=None):
    """What `nodetune verify --find-slow` writes about these hosts, as JSON, and its exit code."""
    inventory = inventory_of(hosts, pythons)
    leaves = [word for leaf in hosts.leaves for word in ("--leaf", ",".join(leaf))] if len(hosts.leaves) > 1 else []
    command = [sys.executable, "-m", "nodetune", "verify", "-i", inventory, "--find-slow", "--round-seconds", "25"]
    done = subprocess.run(
        [*command, *leaves, *options, "--format", "json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    print(done.stderr, done.stdout[:6000])
    return json.loads(done.stdout), done.returncode


def named(found):
    return sorted(each["name"] for each in found["culprits"])


def named_at_last(hosts, *options):
    """What a search names; where it cannot tell, as on busy cores, the next one may."""
    return next(filter(None, (named(searched(hosts, *options)[0]) for _ in range(3))), [])


def test_a_slow_adapter_is_named_and_well_alone(spaces):
    hosts = spaces(6, 6)
    hosts.slow_nic("gpu3", RATE / 4)
    found, code = searched(hosts, "--more-rounds", "10")
    assert named(found) == ["gpu3 NIC 0"]
    (culprit,) = found["culprits"]
    assert 0.6 < culprit["loss"] < 0.9
    assert culprit["alone"] == "well"
    assert culprit["next"].endswith("-l gpu3")
    assert "gpu3" not in found["whole"]["hosts"]
    assert code == 5


def test_of_healthy_hosts_none_is_named(spaces):
    found, code = searched(spaces(6, 6))
    assert named(found) == []
    assert code in (0, 3)


def test_two_slow_adapters_are_both_named(spaces):
    hosts = spaces(8, 8)
    hosts.slow_nic("gpu2", RATE / 2)
    hosts.slow_nic("gpu7", RATE / 3)
    assert named_at_last(hosts, "--more-rounds", "4") == ["gpu2 NIC 0", "gpu7 NIC 0"]


def test_a_slow_path_is_named_and_neither_of_its_ends(spaces):
    hosts = spaces(8, 8)
    hosts.slow_path("gpu4", "gpu5", RATE / 2)
    assert named_at_last(hosts, "--more-rounds", "6") == ["path gpu4 - gpu5"]


def test_a_path_that_passes_nothing_is_named(spaces):
    hosts = spaces(8, 8)
    hosts.cut_path("gpu4", "gpu5")
    found, _ = searched(hosts, "--more-rounds", "6")
    assert named(found) == ["path gpu4 - gpu5"]
    assert found["culprits"][0]["fault"] in ("failed", "hang")


def test_a_slow_link_of_two_switches_is_named(spaces):
    hosts = spaces(8, 4)
    hosts.slow_uplink(0, RATE / 2)
    assert named_at_last(hosts, "--more-rounds", "4") == ["link gpu1,gpu2,gpu3,gpu4 - gpu5,gpu6,gpu7,gpu8"]


def test_a_slow_processor_is_named_by_itself(spaces):
    hosts = spaces(8, 8, **{f"gpu{number}": 0.05 if number == 6 else 0.2 for number in range(1, 9)})
    found, code = searched(hosts, "--more-rounds", "6")
    assert {each["host"] for each in found["alone"]} == {"gpu6"}
    assert [each for each in named(found) if not each.startswith("gpu6")] == []
    assert code == 5


def test_a_host_whose_rank_dies_is_named(spaces):
    hosts = spaces(6, 6)
    python = hosts.python("gpu5", DIES.format(signal="KILL", python=sys.executable))
    found, _ = searched(hosts, "--more-rounds", "4", pythons={"gpu5": python})
    assert named(found) == ["gpu5"]
    assert found["culprits"][0]["fault"] == "failed"


def test_a_host_that_hangs_is_named_and_cleaned_up(spaces):
    hosts = spaces(6, 6)
    python = hosts.python("gpu2", DIES.format(signal="STOP", python=sys.executable))
    found, _ = searched(hosts, "--more-rounds", "4", pythons={"gpu2": python})
    assert named(found) == ["gpu2"]
    assert found["culprits"][0]["fault"] == "hang"
    left = subprocess.run(["pgrep", "-x", "nodetune:rails"], capture_output=True, text=True, check=False).stdout.split()
    assert [pid for pid in left if hosts.is_inside(pid, "gpu2")] == []


def test_a_host_that_computes_wrongly_is_named(spaces):
    hosts = spaces(6, 6)
    script = f"wrong='{WRONG_SUMS}'\n" + STARTER.format(python=sys.executable)
    found, _ = searched(hosts, "--more-rounds", "4", pythons={"gpu4": hosts.python("gpu4", script)})
    assert named(found) == ["gpu4"]
    assert found["culprits"][0]["fault"] == "wrong data"


def test_a_readmitted_host_is_compared_with_its_neighbours(spaces):
    hosts = spaces(3, 3)
    hosts.slow_nic("gpu2", RATE / 4)
    proof = hosts.farm.folder / "proof.tar.gz"
    given = ["--with", "gpu1,gpu3", "--only", "memory", "--load-seconds", "10", "--yes", "--evidence", proof]
    command = [sys.executable, "-m", "nodetune", "readmit", "gpu2", "-i", inventory_of(hosts), *given]
    done = subprocess.run([*command, "--format", "json"], cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stderr, done.stdout)
    assert "find-slow: slow: gpu2 NIC 0" in json.loads(done.stdout)["missing"], done.stderr
    assert done.returncode == 5
    with tarfile.open(proof) as archive:
        assert "proof/find-slow.json" in archive.getnames()
