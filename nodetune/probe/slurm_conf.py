"""The syntax of slurm.conf and of the files like it: lines with includes, settings of the cluster, the line of a node."""

import os
import re

from . import read

OF_CLUSTER = ("accountingstoragetype", "accountingstoragetres", "defcpupergpu", "selecttype", "topologyplugin")
"""More settings, where they hold for the whole cluster: a partition's line may have some of them, too."""

OF_PART = ("nodename", "partitionname", "nodeset", "downnodes", "switchname", "blockname")
"""The first word of lines about a part of the cluster."""

DEEPEST_INCLUDE = 5


def config_lines(path, folder=None, cluster="", depth=0):
    """Return the lines in effect: comments removed, continued lines joined, includes in place. Raise OSError."""
    folder = folder or os.path.dirname(path)
    lines = []
    for text in re.sub(r"\\\n", "", read.text(path)).splitlines():
        line = re.sub(r"(?<!\\)#.*", "", text).strip()
        included = re.match(r"(?i)include\s+(\S+)", line)
        if included and depth < DEEPEST_INCLUDE:
            name = included.group(1).replace("%c", cluster)
            lines += config_lines(os.path.join(folder, name), folder, cluster, depth + 1)
        elif line:
            lines.append(line)
            cluster = dict(pairs(line)).get("clustername", cluster)
    return lines


def pairs(line):
    """Return (lower-case key, text) of every Key=value on a line; a value may be quoted."""
    return [
        (key.lower(), quoted or plain) for key, quoted, plain in re.findall(r'(\w+)\s*=\s*(?:"([^"]*)"|(\S+))', line)
    ]


def cluster_settings(lines):
    """Return the settings of OF_CLUSTER in the lines about the whole cluster."""
    found = {}
    for told in map(pairs, lines):
        if told and told[0][0] not in OF_PART:
            found.update((key, text) for key, text in told if key in OF_CLUSTER)
    return found


def topologies(folder):
    """Return the kinds in topology.yaml, by commas; Slurm 25.05 and later then ignores TopologyPlugin and topology.conf.

    Empty if it is written in a form that this does not read.
    """
    path = os.path.join(folder, "topology.yaml")
    found = re.findall(r"^\s+(?:(block|tree|ring|torus3d):\s*(?:#.*)?$|(flat):)", read.text_or(path), re.MULTILINE)
    kinds = {kind for pair in found for kind in pair if kind}
    return {"topologyyaml": ",".join(sorted(kinds))} if read.exists(path) else {}


IN_YAML = re.compile(r"^\s*(-\s+)?(topology|switch|block|ring|children|nodes):\s*[\"']?([^\"'#\n]*)", re.MULTILINE)
DEEPEST_TREE = 20
"""Slurm takes no deeper one."""


def place(folder, host):
    """Return the file with the network's topology, and for each topology in it the switches and blocks above a node.

    The file is null if there is none. Of topology.yaml only what is written line by line is read.
    """
    path = os.path.join(folder, "topology.yaml")
    if read.exists(path):
        parts = _parts_of_yaml(read.text(path))
    else:
        path = os.path.join(folder, "topology.conf")
        if not read.exists(path):
            return {"file": None, "above": {}}
        parts = [dict(pairs(line), topology="default") for line in config_lines(path)]
    above = {}
    for name in {part["topology"] for part in parts}:
        found = _above([part for part in parts if part["topology"] == name], host)
        if found:
            above[name] = found
    return {"file": path, "above": above}


def _parts_of_yaml(text):
    parts, topology = [], ""
    for starts, key, value in IN_YAML.findall(text):
        if key == "topology":
            topology = value.strip()
        elif starts or not parts:
            parts.append({"topology": topology, key: value.strip()})
        else:
            parts[-1][key] = value.strip()
    return parts


def _above(parts, host):
    """Return the names of the switches and blocks that contain a node, and of the switches above those, in this order."""
    found, new = [], {_name(part) for part in parts if names_host(part.get("nodes", ""), host)}
    while new and len(found) < DEEPEST_TREE:
        found += sorted(new)
        lower = [(_name(part), part.get("children") or part.get("switches", "")) for part in parts]
        new = {name for name, each in lower if any(names_host(each, below) for below in new)} - set(found)
    return found


def _name(part):
    return next((part[key] for key in ("switch", "block", "ring", "switchname", "blockname") if key in part), "")


def node_line(lines, host):
    """Return the settings of this node's NodeName line over NodeName=DEFAULT; None if there is none."""
    default, found = {}, None
    for line in lines:
        settings = dict(pairs(line))
        if settings.get("nodename", "").upper() == "DEFAULT":
            default.update(settings)
        elif "nodename" in settings and names_host(settings["nodename"], host):
            found = dict(default, **settings)
    return found


def names_host(expression, host):
    """Return whether a host list such as `gpu[001-128,200],login1` names the host."""
    return any(_one_names_host(each, host) for each in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", expression))


def _one_names_host(expression, host):
    parts = re.split(r"\[([^\]]*)\]", expression)
    pattern = "".join(re.escape(part) if number % 2 == 0 else r"(\d+)" for number, part in enumerate(parts))
    found = re.match(pattern + "$", host)
    return bool(found) and all(_in_ranges(number, ranges) for number, ranges in zip(found.groups(), parts[1::2]))


def _in_ranges(number, ranges):
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        padded = first.startswith("0") or number.startswith("0")
        if (
            first.isdigit()
            and (len(number) == len(first) or not padded)
            and int(first) <= int(number) <= int(last or first)
        ):
            return True
    return False
