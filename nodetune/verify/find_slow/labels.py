"""Describe the result of a search: parts, evidence, how to decide a doubt, the next command. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from math import exp

from nodetune.foundation import nodeset, text
from nodetune.statistics.thresholds import BIMODAL_SHARE, SLOW_PART_CHANCE
from nodetune.verify.find_slow.culprits import SLOW, WELL
from nodetune.verify.find_slow.model import GPU, HANG, LINK, NIC, PATH, RAIL, UPLINK, WRONG, Culprit, Doubt, Fleet, Part
from nodetune.verify.find_slow.run import SlowSearch
from nodetune.verify.find_slow.stragglers import Straggler

SUREST = 1e9
MAX_ENDS = 6

DID = {HANG: "hangs", WRONG: "gives wrong data", "failed": "fails"}
ALONE = {WELL: "well by itself", SLOW: "slow by itself too"}


def name(part: Part, fleet: Fleet) -> str:
    """Return `gpu17 NIC 3`, `path gpu16 - gpu17` or the like."""
    if part.kind in (LINK, UPLINK):
        ends = [fleet.names[number] or f"leaf {number}" for number in part.at]
        return f"{part.kind} {' - '.join(ends)}"
    hosts = [fleet.nodes[node] for node in part.at]
    if part.kind == PATH:
        return f"path {' - '.join(hosts)}"
    of = {GPU: f" GPU {part.rail}", NIC: f" NIC {part.rail}", RAIL: f" GPU {part.rail} or its NIC"}
    return hosts[0] + of.get(part.kind, "")


def loss(fraction: float, fault: str = "") -> str:
    """Return what a part does: `-21 %`, or `hangs`."""
    return DID.get(fault, f"-{100 * fraction:.{0 if fraction >= 0.1 else 1}f} %")


def evidence(culprit: Culprit, fleet: Fleet) -> str:
    """Return why a part is named, in one line."""
    part = culprit.part
    if part.kind == UPLINK:
        told = [f"to {_ends(culprit.seen_with, fleet.names)} under load"]
    elif part.kind in (PATH, LINK):
        told = [f"in {text.count(culprit.runs, 'run')}", "both ends quick with others"]
    else:
        told = [f"with {_ends(culprit.seen_with, fleet.nodes)}", ALONE.get(culprit.solo, "by itself not clear")]
    if culprit.quick_with:
        told.append(f"quick with {_ends(culprit.quick_with, fleet.names if part.kind == UPLINK else fleet.nodes)}")
    chance = min(SUREST, exp(min(culprit.odds, 50.0)) / SLOW_PART_CHANCE)
    return "; ".join([*told, f"odds 1 : {chance:,.0f} that this is chance"])


def _ends(numbers: Iterable[int], names: Sequence[str]) -> str:
    known = [names[number] for number in numbers]
    more = f" and {len(known) - MAX_ENDS} more" if len(known) > MAX_ENDS else ""
    return ", ".join(known[:MAX_ENDS]) + more


def alone(each: Straggler) -> str:
    """Return why a part is named that is slow by itself."""
    if each.floor:
        return f"{each.metric} by itself, in {each.runs} runs; at least {each.floor.bound:.4g}: {each.floor.provenance}"
    chance = min(SUREST, 1 / max(each.chance, 1e-12))
    return f"{each.metric} by itself, in {each.runs} runs; odds 1 : {chance:,.0f} that this is chance"


def doubt(each: Doubt, found: SlowSearch) -> str:
    """Return the possible parts, and how to decide."""
    parts = " or ".join(name(part, found.fleet) for part in each.between)
    noise = f"noise {100 * found.result.noise:.2g} %"
    if not each.rounds:
        return f"{parts}: {loss(each.loss)}, {noise}: too small for this noise"
    spent = found.seconds[-1] if found.seconds else 0.0
    minutes = f" (about {max(1, round(each.rounds * spent / 60))} min)" if spent else ""
    return f"{parts}: {loss(each.loss)}, {noise}: {text.count(each.rounds, 'more round')}{minutes} would decide: --more-rounds {each.rounds}"


def bimodal(found: SlowSearch) -> str:
    """Return how often runs fall that no part explains; empty if rarely."""
    low, every, depth = found.result.falls
    if low < 3 or low < BIMODAL_SHARE * every:
        return ""
    return f"the figures are bimodal: {low} of {every} runs fell about {loss(1 - exp(-depth))} for no part's fault"


def proof(found: SlowSearch) -> str:
    """Return what the others give as a whole."""
    result = found.result
    if not result.whole:
        return "no hosts are left to run as one"
    out = [node for node in range(len(found.fleet.nodes)) if node not in result.whole]
    without = f" without {nodeset.fold(found.fleet.nodes[node] for node in out)}" if out else ""
    told = f"{text.count(len(result.whole), 'host')}{without} as one"
    if result.whole_fault:
        return f"{told}: {DID[result.whole_fault]}: something else is left"
    if not result.whole_figure:
        return f"{told}: not measured"
    expected = found.expect or result.level
    figure = f"{told}: {result.whole_figure:.4g} {found.unit}"
    if found.left is None:
        return f"{figure}: two hosts have nothing to be compared with: give --expect"
    if found.left:
        why = "the pair is short, which host is undecided" if len(found.fleet.nodes) == 2 else "something else is left"
        return f"{figure}, expected {expected:.4g}: still {100 * found.left:.2g} % short: {why}"
    return f"{figure}, expected {expected:.4g}"


def next_command(part: Part, found: SlowSearch, asked: Sequence[str]) -> str:
    """Return the command to go on with."""
    hosts = found.hosts(part)
    if part.kind == GPU:
        return command(["verify", *limited_to(asked, hosts), "--only", "gpu_load", "--gpu", str(part.rail)])
    if part.kind == PATH:
        return command(["verify", *limited_to(asked, hosts), "--suite", "nccl", "--multi-node"])
    if hosts:
        return command(["audit", *limited_to(asked, hosts)])
    return "look at the ports and counters of its switches"


def limited_to(asked: Sequence[str], hosts: Sequence[str]) -> list[str]:
    """Return the options that select hosts, for these hosts only."""
    words, skip = [], False
    for word in asked:
        if word not in ("-l", "--limit") and not skip:
            words.append(word)
        skip = word in ("-l", "--limit")
    return [*words, "-l", ",".join(hosts)]


def command(words: Sequence[str]) -> str:
    return "nodetune " + shlex.join(words)
