"""The topology for Slurm of fabrics that the real ibnetdiscover walks, in ibsim: it is the one that was worked out without nodetune."""

import os
import re
import shutil
import subprocess

import pytest
import yaml
from support import fabrics
from support.commandline import nodetune

from nodetune.facts import document

SHIM = next((path for path in ("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so",) if os.path.exists(path)), "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SHIM and shutil.which("ibsim")), reason="not installed: ibsim-utils infiniband-diags"),
]


@pytest.fixture
def discovered(tmp_path):
    """Returns the file that ibnetdiscover makes of a fabric that ibsim simulates."""

    def of(net):
        (tmp_path / "net").write_text(net.text())
        limits = ["-N", "20000", "-S", "2000", "-P", "60000"]
        own = {**os.environ, "IBSIM_SOCKNAME": f"nodetune{os.getpid()}", "PATH": os.environ["PATH"] + ":/usr/sbin"}
        simulator = subprocess.Popen(
            ["ibsim", "-s", *limits, "net"],
            cwd=tmp_path,
            env=own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert any("MaxMcastCap" in line for line in simulator.stdout), "ibsim read no fabric"
            walk = {**own, "LD_PRELOAD": SHIM}
            done = subprocess.run(
                ["ibnetdiscover"], cwd=tmp_path, env=walk, capture_output=True, text=True, timeout=500
            )
        finally:
            simulator.kill()
            simulator.communicate()
        assert done.returncode == 0, done.stderr[-2000:]
        (tmp_path / "fabric").write_text(done.stdout)
        return tmp_path / "fabric"

    return of


@pytest.fixture
def switches(discovered, tmp_path):
    """Returns the switches of the tree that `nodetune plan` proposes: name → nodes or switches."""

    def of(made):
        net, results = made
        folder = tmp_path / "facts"
        folder.mkdir()
        for each in results:
            (folder / f"{each.host}.json").write_text(document.dump(each.facts))
        words = ["plan", "--facts", folder, "--select", "slurm", "--fabric", discovered(net)]
        done = nodetune(*words, "--scheduler-diff", tmp_path / "diff")
        assert done.returncode in (0, 3), done.stderr
        text = (tmp_path / "diff").read_text()
        assert not re.search("# (Not in it|Look at|No cable)", text)
        (topology,) = yaml.safe_load(
            "\n".join(re.findall(r"^\+((?!\+\+).*)", text[text.index("topology.yaml") :], re.MULTILINE))
        )
        return {each["switch"]: each.get("nodes") or each["children"] for each in topology["tree"]["switches"]}

    return of


def ranges(count, each):
    return [f"gpu[{at * each + 1:04}-{(at + 1) * each:04}]" for at in range(count)]


def leaves(count, each, name):
    return {name.format(at + 1): nodes for at, nodes in enumerate(ranges(count, each))}


def test_a_fat_tree_of_64_hosts(switches):
    assert switches(fabrics.fat_tree(64, 16, 4)) == {**leaves(4, 16, "leaf{:02}"), "spine1": "leaf[01-04]"}


def test_a_fat_tree_of_1024_hosts(switches):
    assert switches(fabrics.fat_tree(1024, 32, 16)) == {**leaves(32, 32, "leaf{:02}"), "spine1": "leaf[01-32]"}


def test_three_levels_of_64_hosts(switches):
    assert switches(fabrics.three_levels(2, 2, 16)) == {
        "pod01-leaf01": "gpu[0001-0016]",
        "pod01-leaf02": "gpu[0017-0032]",
        "pod01-spine1": "pod01-leaf[01-02]",
        "pod02-leaf01": "gpu[0033-0048]",
        "pod02-leaf02": "gpu[0049-0064]",
        "pod02-spine1": "pod02-leaf[01-02]",
        "core1": "pod01-spine1,pod02-spine1",
    }


def test_three_levels_of_1024_hosts(switches):
    found = switches(fabrics.three_levels(8, 8, 16))
    assert [found.pop(f"pod{pod:02}-leaf{leaf:02}") for pod in range(1, 9) for leaf in range(1, 9)] == ranges(64, 16)
    assert found.pop("core1") == ",".join(f"pod{pod:02}-spine1" for pod in range(1, 9))
    assert found == {f"pod{pod:02}-spine1": f"pod{pod:02}-leaf[01-08]" for pod in range(1, 9)}


@pytest.mark.parametrize(("hosts", "unit"), [(64, 16), (1024, 32)])
def test_rails_with_storage(switches, hosts, unit):
    count = hosts // unit
    assert switches(fabrics.rails(hosts, unit)) == {
        **leaves(count, unit, "su{:02}-rail1"),
        "spine1-1": ",".join(f"su{at + 1:02}-rail1" for at in range(count)),
    }
