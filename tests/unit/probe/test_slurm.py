"""slurm.*: slurm.conf, gres.conf and cgroup.conf as slurmd reads them."""

import pytest

from nodetune.probe import slurm, slurm_conf

CONF = r"""# site
ClusterName=alpha
Include common/%c.conf
Prolog=/etc/slurm/prolog.sh   # gate
PrologFlags=Alloc,\
Contain
SchedulerParameters=bf_window=2880,nohold_on_prolog_fail
AccountingStoragePass=secret
NodeName=DEFAULT Sockets=2 CoresPerSocket=48
NodeName=gpu[001-004] Gres=gpu:h200:8,shard:64 RealMemory=1000
NodeName=login1 Sockets=1
"""
FILES = {
    "/proc/1/comm": "systemd",
    "/usr/lib/systemd/system/slurmd.service": "",
    "/proc/7/comm": "slurmd",
    "/proc/7/status": "Uid:\t0\t0\t0\t0\n",
    "/proc/7/cmdline": "/usr/sbin/slurmd\0-D\0-N\0gpu002\0",
    "/etc/slurm/slurm.conf": CONF,
    "/etc/slurm/common/alpha.conf": "TaskPlugin=task/affinity\n",
}


def test_a_host_without_slurm_has_none(tree, collect):
    tree({"/proc/1/comm": "systemd"})
    facts = collect("slurm")
    assert facts["slurm.present"] == {"value": False}
    assert facts["slurm.config"] == {"absent": "Slurm is not installed"}


DEBIAN = {
    "/proc/1/comm": "systemd",
    "/usr/sbin/slurmd": "",
    "/lib/systemd/system/slurmd.service": "[Unit]\nConditionPathExists=/etc/slurm/slurm.conf\n",
    "/etc/systemd/system/multi-user.target.wants/slurmd.service": "-> /lib/systemd/system/slurmd.service",
}


def test_slurms_package_alone_is_no_slurm(tree, collect):
    root = tree(DEBIAN)
    facts = collect("slurm", ["registered"])
    assert facts["slurm.present"] == {"value": False}
    assert facts["slurm.cgroup"] == {"absent": "Slurm is installed, but neither configured nor running"}
    tree({"/etc/slurm/slurm.conf": CONF, "/etc/slurm/common/alpha.conf": ""})
    assert collect("slurm")["slurm.present"] == {"value": True}
    (root / "etc/slurm/slurm.conf").unlink()
    tree({"/lib/systemd/system/slurmd.service": "[Unit]\n#ConditionPathExists=/etc/slurm/slurm.conf\n"})
    assert collect("slurm")["slurm.present"] == {"value": True}


@pytest.mark.parametrize("folder", ["/usr/lib/x86_64-linux-gnu/slurm-wlm", "/usr/lib64/slurm", "/opt/s/lib"])
def test_what_slurmd_can_detect_is_what_it_has_plugins_for(tree, collect, folder):
    tree({**FILES, "/etc/slurm/common/alpha.conf": "PluginDir=/nowhere:/opt/s/lib\n"})
    assert "absent" in collect("slurm")["slurm.detects"]
    tree({folder + "/gpu_generic.so": ""})
    assert collect("slurm")["slurm.detects"] == {"value": []}
    tree({folder + "/gpu_nvml.so": ""})
    assert collect("slurm")["slurm.detects"] == {"value": ["nvml"]}


def test_settings_are_joined_included_and_in_small_letters(tree, collect):
    tree(FILES)
    settings = collect("slurm")["slurm.config"]["value"]["settings"]
    assert settings == {
        "prolog": "/etc/slurm/prolog.sh",
        "prologflags": "Alloc,Contain",
        "schedulerparameters": "bf_window=2880,nohold_on_prolog_fail",
        "taskplugin": "task/affinity",
    }


def test_secrets_of_slurm_conf_stay_on_the_host(tree, collect):
    tree(FILES)
    told = str(collect("slurm"))
    assert "/etc/slurm/prolog.sh" in told
    assert "secret" not in told


def test_the_node_line_is_that_of_the_name_slurmd_was_given(tree, collect):
    tree(FILES)
    assert collect("slurm")["slurm.node"]["value"] == {
        "gres": "gpu:h200:8,shard:64",
        "gpus": 8,
        "sockets": 2,
        "cores_per_socket": 48,
        "threads_per_core": None,
    }


def test_settings_of_the_cluster_are_not_those_of_a_partition(tree, collect):
    lines = "SelectType=select/cons_tres\nAccountingStorageTRES=gres/gpu\nPartitionName=a DefCpuPerGPU=64\nDefCpuPerGPU=12\n"
    tree({**FILES, "/etc/slurm/common/alpha.conf": lines + "PartitionName=b DefCpuPerGPU=96\n"})
    assert collect("slurm")["slurm.cluster"] == {
        "value": {"selecttype": "select/cons_tres", "accountingstoragetres": "gres/gpu", "defcpupergpu": "12"}
    }


def test_parameters_of_the_nodes_line_are_added_to_those_of_all_nodes(tree, collect):
    own = CONF.replace("NodeName=gpu[001-004]", "NodeName=gpu[001-004] Parameters=numa_node_as_socket")
    tree({**FILES, "/etc/slurm/slurm.conf": own})
    assert collect("slurm")["slurm.config"]["value"]["settings"]["slurmdparameters"] == "numa_node_as_socket"
    tree({"/etc/slurm/slurm.conf": own + "SlurmdParameters=l3cache_as_socket\nNodeName=x Parameters=allow_ecores\n"})
    told = collect("slurm")["slurm.config"]["value"]["settings"]["slurmdparameters"]
    assert told == "l3cache_as_socket,numa_node_as_socket"


TREE = """- topology: trees
  tree:
    switches:
      - switch: sw1
        nodes: n[1-4]
"""


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (TREE, "tree"),
        (TREE + "- topology: racks  # NVLink\n  block:  # of 18\n    blocks:\n      - block: b1\n", "block,tree"),
        (TREE + "- topology: any\n  flat: true\n", "flat,tree"),
        (TREE.replace("        nodes", "        block: b1\n        nodes"), "tree"),
        ("[{topology: racks, block: {block_sizes: [18]}}]", ""),
    ],
)
def test_topology_yaml_tells_its_kinds(tree, collect, text, kinds):
    tree({**FILES, "/etc/slurm/topology.yaml": text})
    assert collect("slurm")["slurm.cluster"]["value"]["topologyyaml"] == kinds


def test_reserved_cores_are_those_of_the_nodes_own_line(tree, collect):
    tree(FILES)
    assert collect("slurm")["slurm.reserved"] == {"value": {}}
    tree({"/etc/slurm/slurm.conf": CONF.replace("NodeName=gpu[001-004]", "NodeName=gpu[001-004] CpuSpecList=0-3")})
    assert collect("slurm")["slurm.reserved"] == {"value": {"cpuspeclist": "0-3"}}
    tree({"/etc/slurm/slurm.conf": "ClusterName=alpha\nNodeName=other\n"})
    assert "no node line" in collect("slurm")["slurm.reserved"]["absent"]


def test_slurmd_may_have_been_told_another_file(tree, collect):
    tree(
        {
            **FILES,
            "/proc/7/cmdline": "/usr/sbin/slurmd\0-f\0/opt/s/slurm.conf\0",
            "/opt/s/slurm.conf": "TaskPlugin=none\n",
        }
    )
    assert collect("slurm")["slurm.config"]["value"] == {
        "file": "/opt/s/slurm.conf",
        "settings": {"taskplugin": "none"},
    }


def test_a_configless_slurmd_left_its_files_under_run(tree, collect):
    tree(
        {
            "/proc/1/comm": "systemd",
            "/proc/7/comm": "slurmd",
            "/proc/7/status": "Uid:\t0\t0\t0\t0\n",
            "/run/slurm/conf/slurm.conf": "Epilog=/e\n",
        }
    )
    assert collect("slurm")["slurm.config"]["value"]["file"] == "/run/slurm/conf/slurm.conf"


def test_a_missing_include_does_not_affect_other_files(tree, collect):
    tree(
        {**FILES, "/etc/slurm/slurm.conf": "Include nowhere.conf\n", "/etc/slurm/cgroup.conf": "ConstrainDevices=yes\n"}
    )
    facts = collect("slurm")
    assert "nowhere.conf" in facts["slurm.config"]["unread"]
    assert facts["slurm.cgroup"]["value"]["constraindevices"] == "yes"


def test_gres_counts_this_nodes_gpus_and_knows_their_cores(tree, collect):
    tree(
        {
            **FILES,
            "/etc/slurm/gres.conf": (
                "AutoDetect=nvml\nNodeName=gpu[001-004] AutoDetect=off Name=gpu Type=h200 File=/dev/nvidia[0-3] Cores=0-47\n"
                "NodeName=gpu[001-004] Name=gpu Type=h200 File=/dev/nvidia[4-7] Cores=48-95\nNodeName=login1 Name=gpu Count=9\n"
            ),
        }
    )
    gres = collect("slurm")["slurm.gres"]["value"]
    assert (gres["autodetect"], gres["gpus"], gres["cores"]) == ("off", 8, True)


def test_each_line_of_a_mig_device_is_one_gpu_with_its_files(tree, collect):
    """Lines as people write them from nvidia-smi mig -lgi."""
    line = "Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap{} AutoDetect=nvml\n"
    tree({**FILES, "/etc/slurm/gres.conf": line.format(66) + line.format(75)})
    gres = collect("slurm")["slurm.gres"]["value"]
    assert (gres["gpus"], gres["autodetect"]) == (2, "nvml")
    assert [each["file"] for each in gres["lines"]] == [
        f"/dev/nvidia0,/dev/nvidia-caps/nvidia-cap{number}" for number in (66, 75)
    ]


@pytest.mark.parametrize(
    ("expression", "host", "named"),
    [
        ("gpu[001-128,200],login1", "gpu128", True),
        ("gpu[001-128,200],login1", "gpu129", False),
        ("gpu[001-128,200],login1", "gpu200", True),
        ("gpu[001-128,200],login1", "login1", True),
        ("gpu[001-128]", "gpu12", False),
        ("gpu[1-128]", "gpu12", True),
        ("r[1-2]n[01-04]", "r2n03", True),
        ("r[1-2]n[01-04]", "r3n03", False),
        ("gpu1", "gpu10", False),
        ("g.u1", "gpu1", False),
    ],
)
def test_host_lists_name_hosts_as_slurm_means_them(expression, host, named):
    assert slurm_conf.names_host(expression, host) is named


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("gpu:8", 8),
        ("gpu:h200:8", 8),
        ("gpu:a:2,gpu:b:6", 8),
        ("gpu", 1),
        ("shard:64", 0),
        ("", 0),
        ("gpu:h200:8(S:0-1)", 8),
        ("gpu:nvidia_h200_nvl:4(S:0,2),VramPerGpu:no_consume:141G", 4),
        ("gpu:mi100:8(S:1,3,5,7),gpu:mi210:1(S:5)", 9),
    ],
)
def test_gpus_are_counted_in_every_way_that_gres_is_written(gres, count):
    assert slurm.gres_count(gres) == count


TREE = """\
SwitchName=s1 Nodes=gpu[001-002]  # one
SwitchName=s2 Nodes=gpu[003-004]
Switchname=top \\
 switches=s[1-2]
"""
YAML = """\
---
# two
- topology: tree1
  cluster_default: true
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - nodes: "gpu[001-002]"
        switch: s1   # leaf
      - switch: s2
        nodes: gpu003
- topology: racks
  block:
    block_sizes:
      - 18
    blocks:
      - block: b1
        nodes: gpu[002,004]
- topology: flat1
  flat: true
"""


def test_the_place_of_the_node_is_that_of_the_file_which_slurm_reads(tree, collect):
    tree({**FILES, "/proc/7/cmdline": "slurmd\0-N\0gpu002\0"})
    none = {"hostname": "gpu002", "version": None, "file": None, "above": {}}
    assert collect("slurm")["slurm.topology"] == {"value": none}
    tree({"/etc/slurm/topology.conf": TREE})
    conf = {**none, "file": "/etc/slurm/topology.conf", "above": {"default": ["s1", "top"]}}
    assert collect("slurm")["slurm.topology"] == {"value": conf}
    tree({"/etc/slurm/topology.conf": "BlockName=b1 Nodes=gpu[001-004]\nBlockSizes=4\n"})
    assert collect("slurm")["slurm.topology"]["value"]["above"] == {"default": ["b1"]}
    tree({"/etc/slurm/topology.yaml": YAML})
    both = {**none, "file": "/etc/slurm/topology.yaml", "above": {"tree1": ["s1", "sw_root"], "racks": ["b1"]}}
    assert collect("slurm")["slurm.topology"] == {"value": both}
    tree({"/etc/slurm/topology.yaml": "[{topology: a, tree: {switches: [{switch: s1, nodes: gpu002}]}}]"})
    assert collect("slurm")["slurm.topology"]["value"]["above"] == {}


def test_switches_in_a_circle_end(tree, collect):
    circle = "SwitchName=s1 Nodes=gpu002\nSwitchName=a Switches=s1,b\nSwitchName=b Switches=a\n"
    tree({**FILES, "/etc/slurm/topology.conf": circle})
    assert collect("slurm")["slurm.topology"]["value"]["above"] == {"default": ["s1", "a", "b"]}
