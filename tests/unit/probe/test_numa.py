"""The numa collector on planted machines."""

NODES = "/sys/devices/system/node"


def node(number, cpus, total, free, cache=0):
    return {
        f"{NODES}/node{number}/cpulist": cpus + "\n",
        f"{NODES}/node{number}/distance": "10 32\n",
        f"{NODES}/node{number}/meminfo": (
            f"Node {number} MemTotal:       {total} kB\nNode {number} MemFree:        {free} kB\n"
            f"Node {number} Active(file):    {cache} kB\nNode {number} Inactive(file):  0 kB\n"
        ),
    }


def test_a_node_tells_its_cpus_and_what_memory_could_be_had(tree, collect):
    tree({**node(0, "0-63", 1000, 100, cache=300), **node(1, "64-127", 1000, 900)})
    facts = collect("numa")
    assert facts["numa.nodes"]["value"]["0"] == {
        "cpus": "0-63", "cpu_count": 64, "memory_kb": 1000, "free_kb": 100, "available_kb": 400,
    }  # fmt: skip
    assert facts["numa.node_count"] == {"value": 2}
    assert facts["numa.distances"] == {"value": {"0": [10, 32], "1": [10, 32]}}


def test_no_node_has_more_memory_to_give_than_it_has(tree, collect):
    tree(node(0, "0-63", 1000, 900, cache=300))
    assert collect("numa")["numa.nodes"]["value"]["0"]["available_kb"] == 1000


def test_a_numa_node_of_gpu_memory_is_not_one_to_run_on(tree, collect):
    tree({**node(0, "0-71", 1000, 900), **node(1, "", 500, 500)})
    facts = collect("numa")
    assert facts["numa.node_count"] == {"value": 1}
    assert facts["numa.nodes"]["value"]["1"]["cpus"] == ""


def test_a_kernel_without_numa_has_none(tree, collect):
    tree({})
    assert "absent" in collect("numa")["numa.node_count"]


def test_a_node_whose_memory_cannot_be_read_is_unread(tree, collect):
    tree({f"{NODES}/node0/cpulist": "0-3", f"{NODES}/node0/meminfo": "nonsense"})
    assert "unread" in collect("numa")["numa.nodes"]
