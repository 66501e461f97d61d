"""The topology for Slurm by a fabric: the tree, hosts that have no place, what Slurm has already."""

import io
from dataclasses import replace

import pytest
import yaml
from support import fabrics

from nodetune.api.model import Absent, Each, Unread, Value
from nodetune.probe import read, slurm_conf
from nodetune.remediation import fabric_file, scheduler_diff


@pytest.fixture
def lines(tmp_path):
    """Returns the lines about the topology in the diff."""

    def of(made):
        net, results = made
        file = tmp_path / "fabric"
        file.write_text(net.text())
        stream = io.StringIO()
        count = scheduler_diff.write(results, stream, fabric_file.read(file))
        assert count == stream.getvalue().count("\n@@ ")
        whole = stream.getvalue()
        return whole[whole.index("/topology.") :].splitlines()

    return of


@pytest.fixture
def content(lines):
    """Returns the proposed file."""
    return lambda made: "\n".join(
        line[1:] for line in lines(made) if line.startswith("+") and not line.startswith("+++")
    )


@pytest.fixture
def switches(content):
    """Returns the switches of the proposed tree: name → nodes or switches."""

    def of(made):
        (topology,) = yaml.safe_load(content(made))
        return {each["switch"]: each.get("nodes") or each["children"] for each in topology["tree"]["switches"]}

    return of


def changed(made, **facts):
    """The same fabric; each host has these facts, which a function makes of its name."""
    net, results = made
    new = {name.replace("__", "."): make for name, make in facts.items()}
    return net, [
        replace(
            each,
            facts=replace(
                each.facts, facts={**each.facts.facts, **{name: make(each.host) for name, make in new.items()}}
            ),
        )
        for each in results
    ]


def test_a_fat_tree_of_64_hosts_is_its_leaf_switches_below_one_spine(lines):
    assert [line for line in lines(fabrics.fat_tree(64, 16, 4)) if not line.startswith("#")] == [
        "/topology.yaml",
        "+++ /etc/slurm/topology.yaml",
        "@@ all nodes of this run @@",
        "+---",
        "+- topology: fabric",
        "+  cluster_default: true",
        "+  tree:",
        "+    switches:",
        "+      - switch: leaf01",
        "+        nodes: gpu[0001-0016]",
        "+      - switch: leaf02",
        "+        nodes: gpu[0017-0032]",
        "+      - switch: leaf03",
        "+        nodes: gpu[0033-0048]",
        "+      - switch: leaf04",
        "+        nodes: gpu[0049-0064]",
        "+      - switch: spine1",
        "+        children: leaf[01-04]",
    ]


def test_pods_of_leaf_switches_are_a_level_of_their_own(switches):
    assert switches(fabrics.three_levels(2, 2, 3)) == {
        "pod01-leaf01": "gpu[0001-0003]",
        "pod01-leaf02": "gpu[0004-0006]",
        "pod01-spine1": "pod01-leaf[01-02]",
        "pod02-leaf01": "gpu[0007-0009]",
        "pod02-leaf02": "gpu[0010-0012]",
        "pod02-spine1": "pod02-leaf[01-02]",
        "core1": "pod01-spine1,pod02-spine1",
    }


RAILS = {
    "su01-rail1": "gpu[0001-0004]",
    "su02-rail1": "gpu[0005-0008]",
    "spine1-1": "su01-rail1,su02-rail1",
}


def test_the_leaf_switches_of_all_rails_are_one_and_storage_is_none(switches):
    assert switches(fabrics.rails(8, 4)) == RAILS


def test_the_same_fabric_in_another_order_gives_the_same_file(content):
    net, results = fabrics.rails(8, 4)
    net.nodes = dict(reversed(net.nodes.items()))
    assert content((net, results[::-1])) == content(fabrics.rails(8, 4))


def unlink(net, one, other):
    at = next(port for port, (to, _) in net.nodes[one][2].items() if to == other)
    _, back = net.nodes[one][2].pop(at)
    del net.nodes[other][2][back]


def named(net, name):
    return next(guid for guid, (_, description, _) in net.nodes.items() if name in description)


def test_a_broken_cable_changes_no_place(switches):
    net, results = fabrics.rails(8, 4)
    unlink(net, named(net, "gpu0002 mlx5_3"), named(net, "su01-rail4"))
    unlink(net, named(net, "su02-rail5"), named(net, "spine5-2"))
    assert switches((net, results)) == RAILS


def test_a_cable_to_another_unit_is_named_and_joins_no_units(lines, switches):
    net, results = fabrics.rails(8, 4)
    unlink(net, named(net, "gpu0002 mlx5_3"), named(net, "su01-rail4"))
    net.link(named(net, "gpu0002 mlx5_3"), named(net, "su02-rail4"))
    assert switches((net, results)) == RAILS
    assert "# Look at the cables of gpu0002: some adapters lead to su02-rail4, most elsewhere." in lines((net, results))


COMPUTE, STORAGE = ("mlx5_0", "mlx5_1"), ("mlx5_2", "mlx5_3", "mlx5_4")


def issue_265(storage=STORAGE, **more):
    """Two compute switches with three hosts each, below one spine, and a storage switch with all of them."""
    net, results = fabrics.Net(), []
    low = [net.switch(fabrics.managed(f"switch{number}")) for number in (1, 2)]
    net.full(low, [net.switch(fabrics.managed("spine1"))])
    apart = net.switch(fabrics.managed("switch-storage1"))
    for number, name in enumerate("ABCDEF"):
        guids = {device: net.adapter(f"{name} {device}") for device in (*COMPUTE, *storage)}
        for device, guid in guids.items():
            net.link(guid, low[number // 3] if device in COMPUTE else apart)
        results.append(fabrics.host(name, guids, gpus=2, **more))
    return net, results


OF_265 = {"switch1": "A,B,C", "switch2": "D,E,F", "spine1": "switch[1-2]"}


def test_storage_adapters_are_told_by_where_the_gpus_are(switches):
    assert switches(issue_265()) == OF_265
    # without PCIe switches: the cards of another model are near the GPUs of one socket only
    assert switches(issue_265(model=dict.fromkeys(STORAGE, "storage"), flat=True)) == OF_265


def test_a_host_whose_storage_adapter_looks_like_the_others_is_placed_by_most_links(switches):
    assert switches(issue_265(STORAGE[:1], flat=True)) == OF_265


def test_hosts_that_cannot_be_told_apart_are_listed_with_the_reason(lines):
    net, results = fabrics.fat_tree(12, 4, 1)
    other = [fabrics.host(f"x{number}", {"mlx5_0": "00000000000000ff"}) for number in (1, 2)]
    facts = {
        "gpu0002": {"rdma.guid": Unread("permission denied")},
        "gpu0003": {"slurm.present": Value(False)},
        "gpu0004": {"pci.gpus": Unread("no sysfs")},
        "gpu0005": {"rdma.guid": results[5].facts.facts["rdma.guid"]},
        "gpu0007": {"slurm.topology": fabrics.topology("gpu0008")},
        "gpu0009": {"rdma.devices": Value({"mlx5_0": 3})},
        "gpu0010": {"slurm.topology": fabrics.topology("a\n+b")},
        "gpu0012": {"rdma.devices": Value({})},
    }
    given = [
        replace(each, facts=replace(each.facts, facts={**each.facts.facts, **facts.get(each.host, {})}))
        for each in results
    ]
    told = lines((net, [*given, *other]))
    assert [line for line in told if line.startswith("# Not in it: ")] == [
        "# Not in it: gpu0010: Slurm allows no such name.",
        "# Not in it: gpu[0005-0006]: another host has an adapter with the same GUID.",
        "# Not in it: gpu[0007-0008]: another host has its name in Slurm.",
        "# Not in it: gpu[0004,0012]: its GPUs or its adapters could not be read.",
        "# Not in it: gpu0009: its facts are malformed.",
        "# Not in it: gpu0002,x[1-2]: the fabric has no adapter with the GUID of one of its own.",
    ]
    assert [line for line in told if "nodes:" in line] == ["+        nodes: gpu0001", "+        nodes: gpu0011"]
    assert "# In the fabric, and of no node of this run: 3 adapters." in told


def test_a_host_between_two_leaf_switches_is_in_none(lines):
    net, results = fabrics.fat_tree(8, 4, 1)
    guid = net.adapter("between mlx5_1")
    for leaf in ("leaf01", "leaf02"):
        net.link(guid, named(net, leaf))
    told = lines((net, [*results, fabrics.host("between", {"mlx5_0": guid}, gpus=0)]))
    assert "# Not in it: between: as many of its links lead to one leaf switch as to another." in told
    assert "between" not in "".join(line for line in told if line.startswith("+"))


def test_switches_in_a_ring_are_joined_and_separate_fabrics_are_not(switches, lines):
    net, results = fabrics.fat_tree(6, 2, 0)
    leaves = [named(net, f"leaf0{number}") for number in (1, 2, 3)]
    assert "No cable joins these 3 parts: leaf01, leaf02, leaf03." in "".join(lines((net, results)))
    for number in range(3):
        net.link(leaves[number], leaves[(number + 1) % 3])
    assert switches((net, results))["fabric-leaf01"] == "leaf[01-03]"


def test_names_that_yaml_takes_for_something_else_are_quoted(switches):
    net, results = fabrics.Net(), []
    leaf = net.switch(fabrics.managed("1e5"))
    for name in ("1", "2", "no", "0x1f"):
        guid = net.adapter(f"{name} mlx5_0")
        net.link(guid, leaf)
        results.append(fabrics.host(name, {"mlx5_0": guid}))
    assert switches((net, results)) == {"1e5": "[1-2],0x1f,no"}


def test_hosts_outside_of_the_run_are_counted(lines):
    net, results = fabrics.fat_tree(8, 4, 1)
    assert "# In the fabric, and of no node of this run: 6 adapters." in lines((net, results[:2]))
    assert lines((net, []))[2] == "# No host has a place in the fabric."


# -- what Slurm has ------------------------------------------------------------------------------------------------------


def leaf(host):
    return "ab"[int(host[3:]) > 4]


def test_the_same_neighbours_by_other_names_need_no_change(lines):
    made = fabrics.fat_tree(8, 4, 2)

    def same(host):
        return fabrics.topology(host, file="/s/topology.yaml", net=[leaf(host), "root"], old=["all"])

    assert lines(changed(made, slurm__topology=same)) == [
        "/topology.yaml",
        "+++ /s/topology.yaml",
        "# Slurm has the topology of the fabric.",
    ]


def test_hosts_with_other_neighbours_are_named(lines):
    made = fabrics.fat_tree(12, 4, 2)
    wrong = {"gpu0001": "b", "gpu0012": "c"}

    def has(host):
        return fabrics.topology(
            host, file="/s/topology.yaml", net=[wrong.get(host, "abc"[(int(host[3:]) - 1) // 4]), "root"]
        )

    told = "".join(lines(changed(made, slurm__topology=has)))
    assert "# Slurm has other neighbours than the fabric, or none, for gpu[0001-0008]." in told
    assert "+        nodes: gpu[0001-0004]" in told


@pytest.mark.parametrize("version", ["25.05.0", "24.11.5"])
@pytest.mark.parametrize("made", [fabrics.rails(8, 4), fabrics.three_levels(2, 2, 2)])
def test_a_slurm_that_reads_the_proposed_file_needs_no_change(lines, content, tmp_path, monkeypatch, made, version):
    before = changed(made, slurm__topology=lambda host: fabrics.topology(host, version))
    name = lines(before)[0]
    (tmp_path / name.strip("/")).write_text(content(before) + "\n")
    monkeypatch.setattr(read, "ROOT", str(tmp_path))
    after = changed(
        made, slurm__topology=lambda host: Value({"hostname": host, "version": version, **slurm_conf.place("/", host)})
    )
    assert lines(after)[2:] == ["# Slurm has the topology of the fabric."]


@pytest.mark.parametrize(
    ("version", "file", "written"),
    [
        ("25.05.0", None, "topology.yaml"),
        ("25.11.1", "/s/topology.conf", "topology.yaml"),
        ("24.11.5", None, "topology.conf"),
        ("24.11.5", "/s/topology.conf", "topology.conf"),
        (None, None, "topology.conf"),
        (None, "/s/topology.yaml", "topology.yaml"),
        ("24.11.5", "/s/topology.yaml", "topology.yaml"),
        ("nonsense", 3, "topology.conf"),
    ],
)
def test_the_file_is_the_one_that_this_slurm_reads(lines, version, file, written):
    told = lines(changed(fabrics.fat_tree(8, 4, 2), slurm__topology=lambda host: fabrics.topology(host, version, file)))
    assert told[0] == f"/{written}"
    assert ("remove topology.conf" in "".join(told)) == (written == "topology.yaml" and not str(file).endswith("yaml"))
    if written == "topology.conf":
        assert [line for line in told[2:] if line.startswith("+")] == [
            "+SwitchName=leaf01 Nodes=gpu[0001-0004]",
            "+SwitchName=leaf02 Nodes=gpu[0005-0008]",
            "+SwitchName=spine1 Switches=leaf[01-02]",
        ]


# -- NVLink racks --------------------------------------------------------------------------------------------------------


def racks(**more):
    """Two racks, whose trays are four a leaf switch, in an order that their names do not have."""

    def rack(host):
        return {"state": "completed", "cluster_uuid": "ba"[int(host[3:]) > 4], "clique_id": 1}

    return changed(
        fabrics.fat_tree(8, 4, 2),
        gpu__names=lambda _: Each({"GPU0": Value("NVIDIA GB200")}),
        gpu__fabric=lambda host: Each({"GPU0": Value(rack(host))}),
        **more,
    )


def test_the_blocks_of_racks_follow_each_other_as_in_the_fabric(content):
    tree, blocks = yaml.safe_load(content(racks()))
    assert (tree["cluster_default"], blocks["cluster_default"]) == (False, True)
    assert blocks["block"] == {
        "block_sizes": [18],
        "blocks": [{"block": "b-1", "nodes": "gpu[0001-0004]"}, {"block": "a-1", "nodes": "gpu[0005-0008]"}],
    }


def test_before_topology_yaml_all_are_blocks_or_none(content, lines):
    old = racks(slurm__topology=lambda host: fabrics.topology(host, "24.11.5"))
    assert content(old).splitlines() == [
        "BlockName=b-1 Nodes=gpu[0001-0004]",
        "BlockName=a-1 Nodes=gpu[0005-0008]",
        "BlockSizes=18",
    ]
    net, results = old
    alone = changed((net, results[:1]), gpu__fabric=lambda _: Absent())[1]
    told = lines((net, [*alone, *results[1:]]))
    assert "+SwitchName=leaf01 Nodes=gpu[0001-0004]" in told
    assert not [line for line in told if line.startswith("+Block")]
    assert any(line.startswith("# Not in it: the NVLink racks.") for line in told)


def test_blocks_that_slurm_has_need_no_change_and_a_missing_tree_does(lines):
    def blocks(host):
        return fabrics.topology(host, file="/s/topology.yaml", racks=[leaf(host)], net=["x"])

    assert "+- topology: fabric" in lines(racks(slurm__topology=blocks))

    def both(host):
        return fabrics.topology(host, file="/s/topology.yaml", racks=[leaf(host)], net=[leaf(host), "root"])

    assert lines(racks(slurm__topology=both))[2:] == ["# Slurm has the topology of the fabric."]
