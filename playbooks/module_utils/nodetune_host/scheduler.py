"""Check whether the scheduler has released this node: Slurm's drain, a kubelet's cordon.

Disruptive changes are made only on nodes that get no new work. Slurm's own commands on the node query it
(root may drain there); `kubectl` with the kubelet's credentials queries the cluster. Unknown counts as "in service".
"""

import os
import re
import socket

from . import command
from .problem import ChangeError

KUBELET_CREDENTIALS = ("/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/kubeconfig")
BUSY = re.compile(r"ALLOC|MIX|COMP|BLOCKED|RESUM|POWERING")
REASON = "nodetune apply {}"


def in_service(kubernetes=None):
    """Return why disruptive changes must wait, on one line; empty if no scheduler uses this node now.

    `kubernetes` is the answer of the cluster, where the controller has asked it.
    """
    return _slurm_in_service() or (_kubelet_in_service() if kubernetes is None else kubernetes)


def _slurm_in_service():
    if not process_of("slurmd")[0]:
        return ""
    try:
        node = slurm_node()
    except ChangeError as problem:
        return f"slurmd runs here, but Slurm cannot be queried: {problem}"
    if "DRAIN" not in node["State"]:
        return f"Slurm may start jobs here ({node['NodeName']} is {node['State']}): drain it, or --drain slurm"
    if BUSY.search(node["State"]):
        return f"Slurm jobs still run here ({node['NodeName']} is {node['State']})"
    return ""


def _kubelet_in_service():
    if not process_of("kubelet")[0]:
        return ""
    kubectl = command.find("kubectl")
    credentials = next((path for path in KUBELET_CREDENTIALS if os.path.exists(path)), None)
    if not kubectl or not credentials:
        return "a kubelet runs here, but the node cannot find out whether it is cordoned: see --assume-drained"
    name = socket.gethostname().lower()
    ask = [kubectl, "--kubeconfig", credentials, "get", "node", name, "-o", "jsonpath={.spec.unschedulable}"]
    try:
        cordoned = command.run(ask, seconds=20).strip() == "true"
    except ChangeError as problem:
        return f"a kubelet runs here, but the cluster cannot be queried: {problem}"
    return "" if cordoned else f"Kubernetes may start pods here: kubectl drain {name}"


def drain(run):
    """Drain this node. Return (whether we drained it, why it is still busy or ""). Raise ChangeError.

    A drain by others is kept: its reason stays, and `resume` will not end it.
    """
    if not process_of("slurmd")[0]:
        return False, ""
    node = slurm_node()
    ours = _reason(node) == REASON.format(run)
    if "DRAIN" not in node["State"]:
        scontrol("update", "NodeName=" + node["NodeName"], "State=DRAIN", "Reason=" + REASON.format(run))
        ours = True
    return ours, _slurm_in_service()


def resume(run):
    """Resume the node only if its drain has this run's reason. Return whether it did. Raise ChangeError."""
    if not process_of("slurmd")[0]:
        return False
    node = slurm_node()
    if "DRAIN" not in node["State"] or _reason(node) != REASON.format(run):
        return False
    scontrol("update", "NodeName=" + node["NodeName"], "State=RESUME")
    return True


def _reason(node):
    """Return the reason without the user and time that Slurm adds: `text [root@2026-11-21T10:00:00]`."""
    return re.sub(r"\s*\[[^\[\]]*\]$", "", node.get("Reason", ""))


def slurm_node():
    """Return {"NodeName", "State", "Reason" …} of this node from slurmctld. Raise ChangeError."""
    own = _option(process_of("slurmd")[1], "-N")
    names = {own, socket.gethostname(), socket.gethostname().partition(".")[0]} - {""}
    nodes = [_fields(line) for line in scontrol("--oneliner", "show", "node").splitlines() if "NodeName=" in line]
    mine = [each for each in nodes if each["NodeName"] == own] or [
        each for each in nodes if names & {each["NodeName"], each.get("NodeHostName", ""), each.get("NodeAddr", "")}
    ]
    if len(mine) != 1:
        raise ChangeError(f"Slurm has {len(mine) or 'no'} nodes that could be {'/'.join(sorted(names))}")
    return mine[0]


def scontrol(*words):
    """Run scontrol with the configuration of the running slurmd, and return its output. Raise ChangeError."""
    pid, started = process_of("slurmd")
    own = os.path.join(os.path.dirname(os.path.dirname(_link(f"/proc/{pid}/exe"))), "bin", "scontrol")
    tool = command.find("scontrol") or (own if os.access(own, os.X_OK) else None)
    if not tool:
        raise ChangeError("scontrol is not on this node")
    config = _option(started, "-f")
    return command.run((["/usr/bin/env", "SLURM_CONF=" + config] if config else []) + [tool, *words], seconds=30)


def _fields(line):
    """Parse NAME=VALUE pairs without blanks; Reason is last and may contain blanks."""
    head, _, reason = line.partition(" Reason=")
    fields = dict(word.split("=", 1) for word in head.split() if "=" in word)
    fields["Reason"] = re.sub(r"\s+Comment=.*$", "", reason).strip()
    return fields


def _option(words, name):
    """Return the operand of a one-letter option: `-N n01` or `-Nn01`; empty if it is not given."""
    for number, word in enumerate(words):
        if word == name:
            return "".join(words[number + 1 : number + 2])
        if word.startswith(name) and not word.startswith("--"):
            return word[len(name) :]
    return ""


def process_of(name):
    """Return (pid, command line) of a running process of that name, or (0, [])."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as stream:
                if stream.read().strip() != name:
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as stream:
                return int(pid), stream.read().decode("utf-8", "replace").rstrip("\0").split("\0")
        except OSError:
            continue
    return 0, []


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""
