"""topology.conf as proposed from a fabric, in a real Slurm: it has the switches, and the next look finds nothing to change."""

import io
import re

import lab
import pytest
from support import fabrics

from nodetune.api.model import Value
from nodetune.facts import document
from nodetune.probe import processes, slurm
from nodetune.remediation import fabric_file, scheduler_diff

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
]


@pytest.fixture(scope="module")
def cluster(place):
    with lab.Cluster(place, nodes=4) as started:
        yield started


def seen(cluster, node):
    """What the probe of a node reads: all of them run here, and it takes the first slurmd for its own."""
    processes._SEEN.clear()
    with pytest.MonkeyPatch.context() as here:
        here.setattr(slurm, "_running", lambda: ["/usr/sbin/slurmd", "-N", node, "-f", str(cluster.conf)])
        found = dict(slurm.collect([], lambda _text: None))
    return document.from_data({"host": node, "facts": {f"slurm.{name}": fact for name, fact in found.items()}}).facts


def proposed(cluster, tmp_path):
    """The lines about topology.conf for two leaf switches and a spine."""
    net, results = fabrics.Net(), []
    leaves = [net.switch(fabrics.managed(f"leaf{number}")) for number in (1, 2)]
    net.full(leaves, [net.switch(fabrics.managed("spine"))])
    for number, node in enumerate(cluster.nodes):
        guid = net.adapter(f"{node} mlx5_0")
        net.link(guid, leaves[number // 2])
        results.append(fabrics.host(node, {"mlx5_0": guid}, **seen(cluster, node)))
    (tmp_path / "fabric").write_text(net.text())
    stream = io.StringIO()
    scheduler_diff.write(results, stream, fabric_file.read(tmp_path / "fabric"))
    return stream.getvalue().partition("+++ " + str(cluster.conf.with_name("topology.conf")))[2]


def test_a_slurm_without_topology_yaml_takes_the_proposed_tree(cluster, tmp_path):
    version = cluster.run("scontrol", "-V").split()[1]
    assert seen(cluster, "n01")["slurm.topology"] == Value(
        {"hostname": "n01", "version": version, "file": None, "above": {}}
    )
    text = proposed(cluster, tmp_path)
    plugin = re.search(r"TopologyPlugin=\S+", text)[0]
    cluster.conf.write_text(f"{plugin}\n{cluster.conf.read_text()}")
    (cluster.conf.parent / "topology.conf").write_text(
        "".join(f"{line}\n" for line in re.findall(r"^\+(.*)", text, re.MULTILINE))
    )
    cluster.restart()
    switches = re.findall(r"SwitchName=(\S+) Level=(\d) .*?Nodes=(\S+)", cluster.run("scontrol", "show", "topology"))
    assert switches == [("leaf1", "0", "n[01-02]"), ("leaf2", "0", "n[03-04]"), ("spine", "1", "n[01-04]")]
    assert seen(cluster, "n03")["slurm.topology"].value["above"] == {"default": ["leaf2", "spine"]}
    assert "# Slurm has the topology of the fabric." in proposed(cluster, tmp_path)
    assert cluster.run("srun", "-N2", "--switches=1", "-w", "n03,n04", "hostname").count("\n") == 2
