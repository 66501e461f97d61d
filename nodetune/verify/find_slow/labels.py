"""Describe the result of a search: parts, evidence, how to decide a doubt, the next command. Pure."""

import shlex
from collections.abc import Iterable, Sequence
from math import exp

from nodetune.api.conclusion import Next
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
        reasons = [f"to {_ends(culprit.slow_with, fleet.names)} under load"]
    elif part.kind in (PATH, LINK):
        reasons = [f"in {text.count(culprit.runs, 'run')}", "both ends quick with others"]
    else:
        reasons = [f"with {_ends(culprit.slow_with, fleet.nodes)}", ALONE.get(culprit.solo, "by itself not clear")]
    if culprit.fast_with:
        reasons.append(f"quick with {_ends(culprit.fast_with, fleet.names if part.kind == UPLINK else fleet.nodes)}")
    chance = min(SUREST, exp(min(culprit.odds, 50.0)) / SLOW_PART_CHANCE)
    return "; ".join([*reasons, f"odds 1 : {chance:,.0f} that this is chance"])


def _ends(numbers: Iterable[int], names: Sequence[str]) -> str:
    known = [names[number] for number in numbers]
    more = f" and {len(known) - MAX_ENDS} more" if len(known) > MAX_ENDS else ""
    return ", ".join(known[:MAX_ENDS]) + more


def straggler_evidence(straggler: Straggler) -> str:
    """Return why a part is named that is slow by itself."""
    if straggler.floor:
        return f"{straggler.metric} by itself, in {straggler.runs} runs; at least {straggler.floor.bound:.4g}: {straggler.floor.provenance}"
    chance = min(SUREST, 1 / max(straggler.chance, 1e-12))
    return f"{straggler.metric} by itself, in {straggler.runs} runs; odds 1 : {chance:,.0f} that this is chance"


def doubt(undecided: Doubt, search: SlowSearch) -> str:
    """Return the possible parts, and how to decide."""
    parts = " or ".join(name(part, search.fleet) for part in undecided.candidates)
    noise = f"noise {100 * search.result.noise:.2g} %"
    if not undecided.more_rounds:
        return f"{parts}: {loss(undecided.loss)}, {noise}: too small for this noise"
    spent = search.seconds[-1] if search.seconds else 0.0
    minutes = f" (about {max(1, round(undecided.more_rounds * spent / 60))} min)" if spent else ""
    return f"{parts}: {loss(undecided.loss)}, {noise}: {text.count(undecided.more_rounds, 'more round')}{minutes} would decide: --more-rounds {undecided.more_rounds}"


def bimodal(search: SlowSearch) -> str:
    """Return how often runs fall that no part explains; empty if rarely."""
    falls, runs, depth = search.result.falls
    if falls < 3 or falls < BIMODAL_SHARE * runs:
        return ""
    return f"the figures are bimodal: {falls} of {runs} runs fell about {loss(1 - exp(-depth))} for no part's fault"


def proof(search: SlowSearch) -> str:
    """Return what the others give as a whole."""
    result = search.result
    if not result.joint_nodes:
        return "no hosts are left to run as one"
    out = [node for node in range(len(search.fleet.nodes)) if node not in result.joint_nodes]
    without = f" without {nodeset.fold(search.fleet.nodes[node] for node in out)}" if out else ""
    hosts = f"{text.count(len(result.joint_nodes), 'host')}{without} as one"
    if result.joint_fault:
        return f"{hosts}: {DID[result.joint_fault]}: something else is left"
    if not result.joint_figure:
        return f"{hosts}: not measured"
    expected = search.expect or result.level
    figure = f"{hosts}: {result.joint_figure:.4g} {search.unit}"
    if search.shortfall is None:
        return f"{figure}: two hosts have nothing to be compared with: give --expect"
    if search.shortfall:
        why = "the pair is short, which host is undecided" if len(search.fleet.nodes) == 2 else "something else is left"
        return f"{figure}, expected {expected:.4g}: still {100 * search.shortfall:.2g} % short: {why}"
    return f"{figure}, expected {expected:.4g}"


def next_step(part: Part, hosts: Sequence[str]) -> Next:
    """Return what to do next about a part with these hosts."""
    if part.kind == GPU:
        return Next("verify", ("--only", "gpu_load", "--gpu", str(part.rail)), tuple(hosts))
    if part.kind == PATH:
        return Next("verify", ("--suite", "nccl", "--multi-node"), tuple(hosts))
    return Next("audit", (), tuple(hosts)) if hosts else Next(text="look at the ports and counters of its switches")


def next_command(step: Next, asked: Sequence[str]) -> str:
    """Return a step as typed, with the options that select hosts."""
    return command([step.verb, *limited_to(asked, step.hosts), *step.words]) if step.verb else step.text


def limited_to(asked: Sequence[str], hosts: Sequence[str]) -> list[str]:
    """Return the options that select hosts, for these hosts only."""
    options, skip = [], False
    for word in asked:
        if word not in ("-l", "--limit") and not skip:
            options.append(word)
        skip = word in ("-l", "--limit")
    return [*options, "-l", ",".join(hosts)]


def command(words: Sequence[str]) -> str:
    return "nodetune " + shlex.join(words)
