"""The proposed changes to slurm.conf, cgroup.conf, gres.conf, and topology.conf or topology.yaml: see scheduler_diff.py."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from nodetune.api.facts_view import FactsView
from nodetune.checks.shared import slurm_cores, slurm_settings
from nodetune.checks.slurm import nvlink_blocks_unknown
from nodetune.foundation import by_key, text
from nodetune.onhost import cpu_list

AUTODETECT = (
    "# Or AutoDetect=nvml instead of these lines, if slurmd was built with NVML (slurmd -G shows what it finds)."
)
NO_NVML = "# AutoDetect=nvml would drain these nodes: their slurmd was built without NVML (no gpu_nvml.so)."
RESERVED = (
    "# On the line of these nodes: a core of each socket for the system and slurmd. Jobs that ask for all cores stay pending, so "
    "measure jitter before and after. Restart slurmctld and slurmd."
)
BLOCKS = "# One line for each rack, then BlockSizes= with its trays (18). TopologyPlugin=topology/block in slurm.conf. Restart slurmctld."
YAML_BLOCKS = (
    "# Slurm ignores topology.conf as long as this file exists. Below blocks: of a topology with block: and block_sizes: [18], one entry "
    "for each rack. Restart slurmctld."
)
DETECTED = ("nvml", "nvidia", "full", "nrt", "rsmi", "oneapi")
CONSTRAINTS = ("ConstrainCores", "ConstrainDevices", "ConstrainRAMSpace")
TASK_PLUGINS = ("task/affinity", "task/cgroup")
NEEDS = (
    *slurm_cores.NEEDS,
    *(f"slurm.{name}" for name in ("present", "config", "cgroup", "cluster", "gres", "node", "detects", "reserved")),
    *nvlink_blocks_unknown.CHECK.needs,
    "numa.node_count",
    "pci.gpus",
)
HOSTS = "\0"
"""Placeholder for the hosts of a hunk."""
WORD = re.compile(r"[\w./,+-]{1,200}")
MIG = re.compile(r"\dg\.\d+gb|/nvidia-cap\d")
"""In the type of a MIG device, or in its files (MultipleFiles) where it has no type."""


def _plain(value: Any) -> str:
    return text.plain(str(value), 200)


def _gres(facts: FactsView) -> tuple[str, list[str]]:
    """Return lines with the cores of each GPU's socket, unless Slurm detects them."""
    gres = facts.get("slurm.gres", {})
    file = gres.get("file", "/etc/slurm/gres.conf")
    unseen = slurm_settings.cannot_detect(facts)
    detected = gres.get("autodetect") in DETECTED and not unseen
    if not facts["slurm.present"] or facts["numa.node_count"] < 2 or detected:
        return file, []
    old = gres.get("lines", [])
    if any(MIG.search(each) for each in (*gres.get("types", []), *(line["file"] for line in old))):
        return file, []
    near = {minor: ranges[_narrow(facts)] for minor, ranges in slurm_cores.near(facts).items()}
    listed = {minor: slurm_cores.numbers(line["cores"]) for line in old for minor in slurm_cores.minors(line["file"])}
    if not unseen and all(listed.get(minor) and set(listed[minor]) <= set(cores) for minor, cores in near.items()):
        return file, []
    cores = [f" Cores={_plain(line['cores'])}" if line["cores"] else "" for line in old]
    removed = [f"-Name=gpu File={_plain(line['file'])}{its}" for line, its in zip(old, cores, strict=True)]
    offered = re.findall(r"gpu:([^:,()]*[^:,()\d][^:,()]*)", (facts.readable("slurm.node") or {}).get("gres", ""))
    note = NO_NVML if "nvml" not in facts.readable("slurm.detects", ["nvml"]) else AUTODETECT
    return file, [note, *removed, *_lines(near, gres.get("types") or offered, " AutoDetect=off" if unseen else "")]


def _narrow(facts: FactsView) -> int:
    """Return 0 if Slurm treats NUMA nodes as sockets, else 1."""
    parameters = facts.get("slurm.config", {"settings": {}})["settings"].get("slurmdparameters", "")
    return 0 if "numa_node_as_socket" in parameters.lower() else 1


def _lines(near: dict[int, range], types: list[str], local: str) -> list[str]:
    known = {kind for kind in types if WORD.fullmatch(kind)}
    kind = f" Type={known.pop()}" if len(known) == 1 else ""
    return [
        f"+NodeName={HOSTS}{local} Name=gpu{kind} File=/dev/nvidia{cpu_list.bracketed(minors)} Cores={cores[0]}-{cores[-1]}"
        for cores, minors in by_key((near[minor], minor) for minor in sorted(near)).items()
    ]


def _cgroup(facts: FactsView) -> tuple[str, list[str]]:
    """Return the constraints that are missing; without cgroup.conf, all of them."""
    settings = facts.get("slurm.cgroup", {})
    lines = []
    for name in CONSTRAINTS if facts["slurm.present"] and facts["pci.gpus"] else ():
        now = settings.get(name.lower())
        if str(now).lower() != "yes":
            lines += ([f"-{name}={_plain(now)}"] if now is not None else []) + [f"+{name}=yes"]
    note = "# Jobs that use cores, memory or GPUs that they did not request get slower or fail. Restart slurmd on all nodes."
    return settings.get("file", "/etc/slurm/cgroup.conf"), [note, *lines] if lines else []


def _slurm(facts: FactsView) -> tuple[str, list[str]]:
    """Return the task plugins and the process tracking that keep a job within its cores, and the kind of resource."""
    config = facts["slurm.config"]
    settings, lines = config["settings"], []
    plugins = settings.get("taskplugin", "")
    words = [word.strip().lower() for word in plugins.split(",")]
    words = [word for word in words if word not in ("", "task/none")]
    missing = [plugin for plugin in TASK_PLUGINS if plugin not in [_whole(word) for word in words]]
    if missing:
        kept = [word for word in words if WORD.fullmatch(word)]
        old = [f"-TaskPlugin={_plain(plugins)}"] if plugins else []
        lines += [*old, f"+TaskPlugin={','.join([*kept, *missing])}"]
    kinds = settings.get("grestypes", "")
    if facts["pci.gpus"] and "gpu" not in slurm_settings.words(settings, "grestypes"):
        lines += ([f"-GresTypes={_plain(kinds)}"] if kinds else []) + [
            f"+GresTypes={_plain(kinds + ',' if kinds else '')}gpu"
        ]
    tracking = settings.get("proctracktype")
    if tracking and tracking.lower() != "proctrack/cgroup":
        lines += [
            "# Change this with no jobs running.",
            f"-ProctrackType={_plain(tracking)}",
            "+ProctrackType=proctrack/cgroup",
        ]
    return config["file"], ["# Restart slurmctld and slurmd everywhere.", *lines] if lines else []


def _reserved(facts: FactsView) -> tuple[str, list[str]]:
    """Return a core of each socket for the system, where Slurm confines jobs to their cores and reserves none."""
    file = facts["slurm.config"]["file"]
    confined = str(facts["slurm.cgroup"].get("constraincores", "no")).lower() == "yes"
    if not facts["pci.gpus"] or not confined or facts["slurm.reserved"]:
        return file, []
    return file, [RESERVED, f"+NodeName={HOSTS} CoreSpecCount={int(facts['cpu.sockets'])}"]


def topology(facts: FactsView) -> tuple[str, list[str]]:
    """Return the block of the NVLink rack of this host, unless Slurm knows blocks."""
    in_yaml, plugin = "topologyyaml" in facts["slurm.cluster"], nvlink_blocks_unknown.observe(facts)
    file = str(PurePosixPath(facts["slurm.config"]["file"]).with_name("topology." + ("yaml" if in_yaml else "conf")))
    if not facts["slurm.present"] or not isinstance(plugin, str) or plugin == "topology/block":
        return file, []
    block = rack(facts)
    if in_yaml:
        return file, [YAML_BLOCKS, f"+- block: {block}", f"+  nodes: {HOSTS}"]
    return file, [BLOCKS, f"+BlockName={block} Nodes={HOSTS}"]


def rack(facts: FactsView) -> str:
    """Return the name for the block of this host's NVLink rack. Raise ValueError or a fact's error where it has none."""
    ((uuid, clique),) = {(each.get("cluster_uuid"), each.get("clique_id")) for each in facts["gpu.fabric"].values()}
    return f"{re.sub(r'[^A-Za-z0-9-]', '', str(uuid))[:36]}-{int(clique)}"


def _whole(word: str) -> str:
    """Return the full name of a task plugin, which may be written without `task/`."""
    return word if word.startswith("task/") else f"task/{word}"


PARTS = (_gres, _cgroup, _slurm, _reserved, topology)
