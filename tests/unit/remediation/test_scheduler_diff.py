"""Changes of Slurm's and the kubelet's configuration, proposed as a diff."""

import io
from pathlib import Path

import pytest

from nodetune.api.model import Absent, Each, HostFacts, HostResult, Unread, Value
from nodetune.audit.selection import Selection
from nodetune.facts import document
from nodetune.foundation import nodeset
from nodetune.remediation import scheduler_diff

DATA = Path(__file__).parents[2] / "data" / "synthetic"
NODE = {"cpu_count": 96}
SETTINGS = {"taskplugin": "affinity,task/cgroup", "grestypes": "gpu"}


def gpus(nodes):
    return {
        "pci.gpus": Value([f"0000:{minor:02x}:00.0" for minor in range(len(nodes))]),
        "pci.devices": Value({f"0000:{minor:02x}:00.0": {"numa_node": node} for minor, node in enumerate(nodes)}),
        "gpu.bdf": Each({f"GPU{minor}": Value(f"0000:{minor:02x}:00.0") for minor in range(len(nodes))}),
        "gpu.minor_number": Each({f"GPU{minor}": Value(minor) for minor in range(len(nodes))}),
    }


def node(name="gpu01", of=(0, 0, 1, 1), **more):
    """A host with four GPUs on two sockets; Slurm is all right, but for what is given."""
    facts = {
        **gpus(of),
        "numa.nodes": Value({"0": NODE, "1": NODE}),
        "numa.node_count": Value(2),
        "cpu.cores": Value(96),
        "cpu.sockets": Value(2),
        "slurm.present": Value(True),
        "slurm.gres": Value({"autodetect": "nvml", "types": ["h200"], "lines": [], "file": "/etc/slurm/gres.conf"}),
        "slurm.cgroup": Value(dict.fromkeys(("constraincores", "constraindevices", "constrainramspace"), "yes")),
        "slurm.config": Value({"file": "/etc/slurm/slurm.conf", "settings": SETTINGS}),
        "kubernetes.present": Value(False),
        "kubernetes.kubelet": Absent("no kubelet on this host"),
    }
    return HostResult(
        name, "ok", facts=HostFacts(name, facts | {key.replace("__", "."): each for key, each in more.items()})
    )


def diff(*results):
    stream = io.StringIO()
    count = scheduler_diff.write(results, stream)
    lines = stream.getvalue().splitlines()[2:]
    assert count == sum(line.startswith("@@") for line in lines)
    return [line for line in lines if line and not line.startswith("#")]


def gres(*lines, **more):
    listed = [{"file": file, "cores": cores} for file, cores in lines]
    return Value({"autodetect": None, "types": ["h200"] * len(lines), "lines": listed, "file": "/s/gres.conf", **more})


def test_its_facts_are_collected_for_checks_of_slurm_and_kubelet():
    assert set(scheduler_diff.NEEDS) <= Selection(select=("slurm", "kubernetes")).facts()


def test_a_host_in_order_or_without_facts_gets_no_change():
    assert diff(node(), HostResult("lost", "unreachable")) == []


def test_a_core_of_each_socket_is_proposed_where_none_is_reserved():
    none = {"slurm__reserved": Value({})}
    assert diff(node("gpu01", **none), node("gpu02", **none)) == [
        "--- /etc/slurm/slurm.conf",
        "+++ /etc/slurm/slurm.conf",
        "@@ gpu[01-02] @@",
        "+NodeName=gpu[01-02] CoreSpecCount=2",
    ]
    assert diff(node(slurm__reserved=Value({"cpuspeclist": "0-3"}))) == []
    unconfined = Value({"constraincores": "no", "constraindevices": "yes", "constrainramspace": "yes"})
    assert not [line for line in diff(node(**none, slurm__cgroup=unconfined)) if "CoreSpec" in line]


def tray(name, rack, plugin="topology/tree", clique=1, model="NVIDIA GB200", **more):
    fabric = Value({"state": "completed", "cluster_uuid": rack, "clique_id": clique})
    given = {"gpu__names": Each({"GPU0": Value(model)}), "slurm__cluster": Value({"topologyplugin": plugin})}
    return node(name, **{**given, "gpu__fabric": Each({"GPU0": fabric}), **more})


def test_the_trays_of_a_rack_are_proposed_as_a_block():
    racks = [tray("t01", "a1-b2"), tray("t02", "a1-b2"), tray("t03", "c3"), tray("t04", "c3", clique=2)]
    assert [line for line in diff(*racks) if line.startswith(("+", "-"))] == [
        "--- /etc/slurm/topology.conf",
        "+++ /etc/slurm/topology.conf",
        "+BlockName=a1-b2-1 Nodes=t[01-02]",
        "+BlockName=c3-1 Nodes=t03",
        "+BlockName=c3-2 Nodes=t04",
    ]
    assert diff(tray("t01", "a", plugin="topology/block"), tray("t02", "a", model="NVIDIA H200")) == []
    two = Each({f"GPU{n}": Value({"state": "completed", "cluster_uuid": "a", "clique_id": n}) for n in (1, 2)})
    assert diff(tray("t01", "a", gpu__fabric=two)) == []


def test_blocks_are_proposed_where_slurm_reads_them():
    yaml = {"slurm__cluster": Value({"topologyplugin": "topology/block", "topologyyaml": "tree"})}
    assert [
        line for line in diff(tray("t01", "a", **yaml), tray("t02", "a", **yaml)) if line.startswith(("+", "-"))
    ] == [
        "--- /etc/slurm/topology.yaml",
        "+++ /etc/slurm/topology.yaml",
        "+- block: a-1",
        "+  nodes: t[01-02]",
    ]
    for kinds in ("block,tree", ""):
        assert diff(tray("t01", "a", slurm__cluster=Value({"topologyyaml": kinds}))) == []


def test_gpus_get_the_cores_of_their_socket_hosts_share_a_hunk():
    bad = gres(("/dev/nvidia[0-3]", ""))
    assert diff(node("gpu01", slurm__gres=bad), node("gpu02", slurm__gres=bad)) == [
        "--- /s/gres.conf",
        "+++ /s/gres.conf",
        "@@ gpu[01-02] @@",
        "-Name=gpu File=/dev/nvidia[0-3]",
        "+NodeName=gpu[01-02] Name=gpu Type=h200 File=/dev/nvidia[0-1] Cores=0-47",
        "+NodeName=gpu[01-02] Name=gpu Type=h200 File=/dev/nvidia[2-3] Cores=48-95",
    ]


def test_cores_of_another_socket_are_replaced_right_ones_stay():
    right = gres(("/dev/nvidia[0-1]", "0-47"), ("/dev/nvidia[2,3]", "48-71"))
    assert diff(node(slurm__gres=right)) == []
    wrong = gres(("/dev/nvidia[0-1]", "0-47"), ("/dev/nvidia[2,3]", "0-47"))
    assert "-Name=gpu File=/dev/nvidia[2,3] Cores=0-47" in diff(node(slurm__gres=wrong))
    assert "+NodeName=gpu01 Name=gpu Type=h200 File=/dev/nvidia[0,2] Cores=0-47" in diff(
        node(of=(0, 1, 0, 1), slurm__gres=wrong)
    )


def test_a_host_with_mig_devices_gets_no_lines_for_whole_gpus():
    assert diff(node(slurm__gres=gres(("/dev/nvidia[0-3]", ""), types=["1g.10gb"]))) == []
    without_type = ("/dev/nvidia0,/dev/nvidia-caps/nvidia-cap66,/dev/nvidia-caps/nvidia-cap67", "")
    assert diff(node(slurm__gres=gres(without_type, types=[]))) == []


def test_the_names_of_many_hosts_are_whole():
    names = [f"gpu{number}" for number in range(0, 6000, 3)]
    told = diff(*(node(name, slurm__gres=gres(("/dev/nvidia[0-3]", ""))) for name in names))
    assert sorted(nodeset.unfold(told[2].strip("@ "))) == sorted(names)


def test_the_names_of_hosts_are_folded_as_slurm_reads_them():
    bad = gres(("/dev/nvidia[0-1]", ""))
    lines = diff(*(node(f"gpu{number}-ib", of=(0, 0), slurm__gres=bad) for number in (1, 2)))
    assert lines[-1].startswith("+NodeName=gpu1-ib,gpu2-ib Name=gpu ")


def test_with_numa_nodes_as_sockets_a_gpu_gets_cores_of_its_node():
    nodes = Value({str(number): NODE for number in range(4)})
    parameters = Value({"file": "/s", "settings": {**SETTINGS, "slurmdparameters": "numa_node_as_socket"}})
    told = diff(node(of=(1,), numa__nodes=nodes, slurm__gres=gres(("/dev/nvidia0", "")), slurm__config=parameters))
    assert told[-1] == "+NodeName=gpu01 Name=gpu Type=h200 File=/dev/nvidia0 Cores=24-47"


def test_a_slurmd_without_nvml_gets_files_for_what_it_cannot_detect():
    lacks = {"slurm__detects": Value(["rsmi"]), "slurm__node": Value({"gres": "gpu:h200:4"})}
    assert diff(node(slurm__detects=Value(["nvml"]))) == []
    assert diff(node(**lacks))[3:] == [
        "+NodeName=gpu01 AutoDetect=off Name=gpu Type=h200 File=/dev/nvidia[0-1] Cores=0-47",
        "+NodeName=gpu01 AutoDetect=off Name=gpu Type=h200 File=/dev/nvidia[2-3] Cores=48-95",
    ]


def test_gpu_is_added_to_the_other_kinds_of_resources():
    for old, new in (("", ["+GresTypes=gpu"]), ("nic", ["-GresTypes=nic", "+GresTypes=nic,gpu"])):
        config = Value({"file": "/s/slurm.conf", "settings": {**SETTINGS, "grestypes": old}})
        assert diff(node(slurm__config=config))[3:] == new


def test_missing_constraints_and_plugins_are_added_to_the_others():
    config = {
        "file": "/s/slurm.conf",
        "settings": {**SETTINGS, "taskplugin": "task/none,affinity", "proctracktype": "proctrack/pgid"},
    }
    told = diff(
        node(slurm__cgroup=Value({"constraincores": "no", "file": "/s/cgroup.conf"}), slurm__config=Value(config))
    )
    assert told[3:7] == ["-ConstrainCores=no", "+ConstrainCores=yes", "+ConstrainDevices=yes", "+ConstrainRAMSpace=yes"]
    assert told[10:] == [
        "-TaskPlugin=task/none,affinity",
        "+TaskPlugin=affinity,task/cgroup",
        "-ProctrackType=proctrack/pgid",
        "+ProctrackType=proctrack/cgroup",
    ]


def test_the_kubelets_managers_are_proposed_over_the_old_ones():
    kubelet = Value({"file": "/k.yaml", "settings": {"topologyManagerPolicy": "single-numa-node"}, "running": True})
    assert diff(node(slurm__present=Value(False), slurm__config=Absent(), kubernetes__kubelet=kubelet))[3:] == [
        "+cpuManagerPolicy: static",
        "-topologyManagerPolicy: single-numa-node",
        "+topologyManagerPolicy: best-effort",
    ]


UNSET = Value({"file": "/k.yaml", "settings": {}, "running": True})


@pytest.mark.parametrize(
    ("smt", "cpus", "reserved"),
    [
        ("on", ["0-47,96-143", "48-95,144-191"], "0,48,96,144"),
        ("off", ["0-47", "48-95"], "0,48"),
        ("on", ["0-7", ""], "0"),
    ],
)
def test_a_core_of_each_numa_node_is_kept_for_the_system(smt, cpus, reserved):
    nodes = Value({f"node{number}": {"cpus": each} for number, each in enumerate(cpus)})
    lines = diff(
        node(
            slurm__present=Value(False),
            slurm__config=Absent(),
            kubernetes__kubelet=UNSET,
            numa__nodes=nodes,
            cpu__smt=Value(smt),
        )
    )
    assert f'+reservedSystemCPUs: "{reserved}"' in lines


def test_many_numa_nodes_are_allowed_to_the_kubelet():
    lines = diff(
        node(slurm__present=Value(False), slurm__config=Absent(), kubernetes__kubelet=UNSET, numa__node_count=Value(34))
    )
    assert lines[-3:] == [
        "+topologyManagerPolicy: best-effort",
        "+topologyManagerPolicyOptions:",
        '+  max-allowable-numa-nodes: "34"',
    ]


@pytest.mark.parametrize("fact", ["slurm.gres", "slurm.cgroup", "slurm.config", "pci.devices", "numa.nodes"])
def test_what_could_not_be_read_is_not_proposed(fact):
    assert diff(node(**{fact: Unread("permission denied")})) == []


@pytest.mark.parametrize("value", [7, [], {"file": 3, "settings": [], "lines": "x"}, {"lines": [{"file": None}]}])
def test_facts_of_an_unexpected_shape_end_nothing(value):
    for fact in ("slurm.gres", "slurm.cgroup", "slurm.config", "kubernetes.kubelet", "numa.nodes"):
        diff(node(**{fact: Value(value)}))


def test_texts_of_a_host_stay_on_their_line():
    told = diff(
        node(
            slurm__gres=gres(("/dev/nvidia0\n+NodeName=x", ""), file="/s\n+x"),
            slurm__cgroup=Value({"constraincores": "\x1b[2J\n+y"}),
        )
    )
    assert not [line for line in told if line.startswith(("+NodeName=x", "+x", "+y")) or "\x1b" in line]


def test_a_recorded_machine_gets_a_diff():
    facts = document.load(DATA / "hgx-h200-untuned.json")
    told = diff(HostResult(facts.host, "ok", facts=facts))
    assert "+TaskPlugin=task/affinity,task/cgroup" in told
    assert "+NodeName=hgx-h200-untuned Name=gpu Type=h200 File=/dev/nvidia[0-3] Cores=0-55" in told
