"""The topology that Slurm should have by the fabric: topology.yaml for Slurm 25.05 and later, or topology.conf."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import HostResult
from nodetune.audit.evaluate import MALFORMED
from nodetune.checks.slurm import nvlink_blocks_unknown
from nodetune.foundation import by_key, nodeset, text
from nodetune.remediation import fabric_hosts, fabric_tree, slurm_diff
from nodetune.remediation.fabric_file import Fabric
from nodetune.remediation.fabric_hosts import Nodes
from nodetune.remediation.fabric_tree import Tree, TreeSwitch

NEEDS = fabric_hosts.NEEDS
YAML_SINCE = (25, 5)
TRAYS = 18
"""Nodes of a whole NVLink rack, which is the smallest block."""

WHOLE = "# The whole file, by the fabric and the facts of these hosts. A node that it lacks gets no job together with others."
SEVERAL = "# A switch here is all switches that connect the same (the leaf switches of all rails, the spines), by the name of the first."
NEW_YAML = "# Slurm ignores topology.conf and TopologyPlugin as long as this file exists: remove topology.conf. Restart slurmctld."
OLD_YAML = "# Keep the topologies of other nodes that the file has, and the default of the cluster. Restart slurmctld."
PLUGIN = "# TopologyPlugin=topology/{} in slurm.conf. Restart slurmctld."
NO_BLOCKS = "# Not in it: the NVLink racks. Only topology.yaml (Slurm 25.05) has blocks next to a tree, which these hosts are not all in."

MAX_BYTES = 1 << 20
"""Longest remark: a shortened one would name other hosts."""

Sets = frozenset[frozenset[str]]


def lines(results: Sequence[HostResult], fabric: Fabric) -> tuple[str, list[str]]:
    """Return the file, and the lines about it: those that begin with + are its whole content, none if Slurm has this topology."""
    found = fabric_hosts.nodes(results, fabric)
    tree = fabric_tree.tree(found.links, fabric)
    for node in tree.torn:
        found.leave(node, "as many of its links lead to one leaf switch as to another")
    file, in_yaml = _file(found)
    placed = [node for root in tree.roots for node in _nodes(root)]
    blocks = by_key((rack, node) for node in placed if (rack := _rack(found.facts[node])))
    in_blocks = bool(blocks) and sum(map(len, blocks.values())) == len(placed)
    remarks = [f"# {text.plain(line, MAX_BYTES)}" for line in _remarks(found, tree, fabric)]
    if not placed:
        return file, ["# No host has a place in the fabric.", *remarks]
    has = _sets_of_slurm(found, placed)
    wanted = [_sets(tree.roots)] if in_yaml or not in_blocks else []
    wanted += [frozenset(map(frozenset, blocks.values()))] if blocks and (in_yaml or in_blocks) else []
    if all(sets in has.values() for sets in wanted):
        return file, ["# Slurm has the topology of the fabric.", *remarks]
    new = _yaml(tree, blocks, in_blocks) if in_yaml else _conf(tree, blocks if in_blocks else {})
    if not in_yaml:
        note = (PLUGIN.format("block" if in_blocks else "tree"), *([NO_BLOCKS] if blocks and not in_blocks else []))
    else:
        note = (OLD_YAML if any(place.file == file for place in found.places.values()) else NEW_YAML,)
    return file, [WHOLE, SEVERAL, *note, *_moved(tree, has), *remarks, *(f"+{line}" for line in new)]


def _moved(tree: Tree, has: Mapping[str, Sets]) -> Iterable[str]:
    """Yield a line with the nodes whose leaf switch has other nodes in every topology of Slurm, which has one."""
    leaves = [each.below for root in tree.roots for each in root.all() if not each.children]
    nodes = [node for leaf in leaves if not any(leaf in sets for sets in has.values()) for node in leaf]
    if has and nodes:
        yield f"# Slurm has other neighbours than the fabric, or none, for {nodeset.for_slurm(nodes)}."


def _nodes(switch: TreeSwitch) -> list[str]:
    """Return the nodes below a switch, neighbours next to each other."""
    if not switch.children:
        return sorted(switch.below)
    return [node for child in switch.children for node in _nodes(child)]


def _file(found: Nodes) -> tuple[str, bool]:
    """Return the file to write, and whether it is topology.yaml: never topology.conf where Slurm reads that, or would."""
    yaml = [place.file for place in found.places.values() if place.file.endswith(".yaml")]
    if yaml:
        return text.plain(yaml[0]), True
    new = max((place.version for place in found.places.values()), default=()) >= YAML_SINCE
    configs = [view.readable("slurm.config") for view in found.facts.values()]
    config = next(
        (str(each["file"]) for each in configs if isinstance(each, dict) and each.get("file")), "/etc/slurm/slurm.conf"
    )
    return text.plain(str(PurePosixPath(config).with_name("topology.yaml" if new else "topology.conf"))), new


def _rack(view: FactsView) -> str:
    """Return the name of a node's NVLink rack, empty if it has none."""
    try:
        return slurm_diff.rack(view) if isinstance(nvlink_blocks_unknown.observe(view), str) else ""
    except (FactAbsentError, FactUnreadError, *MALFORMED):
        return ""


def _sets(roots: Iterable[TreeSwitch]) -> Sets:
    return frozenset(each.below for root in roots for each in root.all())


def _sets_of_slurm(found: Nodes, nodes: Iterable[str]) -> dict[str, Sets]:
    """Return the sets of these nodes that the switches and blocks of each topology of Slurm have."""
    sets: dict[str, dict[str, set[str]]] = {}
    for node in nodes:
        for topology, names in found.places[node].above.items():
            for name in names:
                sets.setdefault(topology, {}).setdefault(name, set()).add(node)
    return {topology: frozenset(map(frozenset, each.values())) for topology, each in sets.items()}


def _remarks(found: Nodes, tree: Tree, fabric: Fabric) -> Iterable[str]:
    yield from (f"Not in it: {line}." for line in fabric_hosts.folded(found.unplaced))
    for where, hosts in sorted(by_key((where, node) for node, where in tree.astray.items()).items()):
        yield f"Look at the cables of {nodeset.for_slurm(hosts)}: some adapters lead to {where}, most elsewhere."
    if len(tree.roots) > 1:
        yield f"No cable joins these {len(tree.roots)} parts: {', '.join(each.name for each in tree.roots)}. No job gets nodes of several."
    others = sum(guid not in found.used for guid in fabric.adapters)
    if others:
        yield f"In the fabric, and of no node of this run: {text.count(others, 'adapter')}."


def _switches(tree: Tree) -> Iterable[tuple[str, str, str]]:
    """Yield the name of each switch, the switches below it, or else its nodes: the other text is empty."""
    for root in tree.roots:
        for each in root.all():
            children = nodeset.for_slurm(child.name for child in each.children)
            yield each.name, children, "" if children else nodeset.for_slurm(each.below)


def _yaml(tree: Tree, blocks: Mapping[str, Sequence[str]], in_blocks: bool) -> Iterable[str]:
    yield from (
        "---",
        "- topology: fabric",
        f"  cluster_default: {'false' if in_blocks else 'true'}",
        "  tree:",
        "    switches:",
    )
    for name, children, nodes in _switches(tree):
        yield f"      - switch: {_scalar(name)}"
        yield f"        children: {_scalar(children)}" if children else f"        nodes: {_scalar(nodes)}"
    if blocks:
        yield from ("- topology: nvlink", f"  cluster_default: {'true' if in_blocks else 'false'}", "  block:")
        yield from (f"    block_sizes: [{TRAYS}]", "    blocks:")
        for name, trays in blocks.items():
            yield from (f"      - block: {_scalar(name)}", f"        nodes: {_scalar(nodeset.for_slurm(trays))}")


def _scalar(name: str) -> str:
    """Return a name as a text of YAML: quoted where it may be a number, a list or a word such as `no`."""
    return (
        name
        if re.match(r"[A-Za-z][^,]{3}", name) and not name.lower().startswith(("true", "false", "null"))
        else f'"{name}"'
    )


def _conf(tree: Tree, blocks: Mapping[str, Sequence[str]]) -> Iterable[str]:
    if blocks:
        yield from (f"BlockName={name} Nodes={nodeset.for_slurm(trays)}" for name, trays in blocks.items())
        yield f"BlockSizes={TRAYS}"
        return
    for name, children, nodes in _switches(tree):
        yield f"SwitchName={name} Switches={children}" if children else f"SwitchName={name} Nodes={nodes}"
