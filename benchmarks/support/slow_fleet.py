"""A fleet in which something is slow, as numbers: it answers the rounds of a search as real hosts would.

A run is as fast as its slowest part. Noise of 1 to 3 % comes on top, half of it the run's, half each rail's own; one fleet in
four is bimodal: a run falls 4 to 12 % short with a chance of 5 to 25 %. A node's first run is 4 % slower.
"""

import math
import random
from dataclasses import dataclass, field

from nodetune.verify.find_slow import model
from nodetune.verify.find_slow.model import Fleet, GroupResult, Part
from nodetune.verify.find_slow.search import Search

RAILS = 8
COLD = 0.04
ACROSS = 0.01
HANG_SECONDS = 60.0
KINDS = ("node", "gpu", "nic", "path", "link", "uplink", "hang", "wrong", "pair hang", "path rail", "link rail")


def leaf(count):
    """The nodes of a domain in a fleet of that size."""
    return 4 if count < 16 else 8 if count < 256 else 32


@dataclass
class Loss:
    """What a part takes from runs: a factor for each rail. 0: the rail is broken."""

    rails: tuple = (1.0,) * RAILS
    fault: str = ""


def on_rails(factor, rails):
    return tuple(factor if rail in rails else 1.0 for rail in range(RAILS))


@dataclass
class SlowFleet:
    """`drift`: by how much all runs change from round to round. `oversubscribed`: the uplinks, so many times."""

    count: int
    rng: random.Random
    drift: float = 0.0
    oversubscribed: float = 1.0
    node: dict = field(default_factory=dict)
    alone: dict = field(default_factory=dict)
    path: dict = field(default_factory=dict)
    link: dict = field(default_factory=dict)
    room: dict = field(default_factory=dict)
    rounds: int = 0
    seconds: float = 0.0

    def __post_init__(self):
        size = leaf(self.count)
        leaves = max(1, self.count // size)  # the last one has what is left: smaller leaves are not judged
        self.fleet = Fleet(
            tuple(f"gpu-{number:03}" for number in range(self.count)),
            tuple(min(number // size, leaves - 1) for number in range(self.count)),
            tuple(f"leaf-{number}" for number in range(leaves)),
        )
        self.noise = self.rng.uniform(0.01, 0.03)
        bimodal = self.rng.random() < 0.25
        self.fall = (self.rng.uniform(0.05, 0.25), self.rng.uniform(0.04, 0.12)) if bimodal else (0.0, 0.0)
        self.cold = set(range(self.count))
        self.moved = 1.0

    def plant(self, kind, effect):
        """Make a part slow by that fraction. Return the part that is to be named."""
        node, rail = self.rng.randrange(self.count), self.rng.randrange(RAILS)
        if kind in ("path", "pair hang", "path rail"):
            ends = tuple(sorted((node, (node + 1) % self.count)))
            rails = (rail,) if kind == "path rail" else range(RAILS)
            self.path[ends] = Loss(on_rails(1 - effect, rails), model.HANG if kind == "pair hang" else "")
            return Part(model.PATH, ends)
        if kind in ("link", "uplink", "link rail"):
            return self._plant_far(kind, effect, rail)
        if kind in ("hang", "wrong"):
            loss = Loss(fault=model.HANG if kind == "hang" else model.WRONG)
            self.node[node] = loss
            if self.rng.random() < 0.5:
                self.alone[node] = loss
            return Part(model.NODE, (node,))
        loss = Loss(on_rails(1 - effect, range(RAILS) if kind == "node" else (rail,)))
        self.node[node] = loss
        if kind != "nic":
            self.alone[node] = loss
        return Part(model.NODE, (node,)) if kind == "node" else Part(kind, (node,), rail)

    def _plant_far(self, kind, effect, rail):
        domains = max(self.fleet.domains) + 1
        domain = self.rng.randrange(domains)
        if kind == "uplink" and domains > 2:
            self.room[domain] = 1 - effect
            return Part(model.UPLINK, (domain,))
        ends = tuple(sorted((domain, (domain + 1) % domains)))
        self.link[ends] = Loss(on_rails(1 - effect, (rail,) if kind == "link rail" else range(RAILS)))
        return Part(model.LINK, ends)

    def answer(self, wanted):
        """Answer a round, as HostRounds does."""
        self.rounds += 1
        shares = self._shares(wanted)
        answers = [self._run(wanted.kind, group, share) for group, share in zip(wanted.groups, shares, strict=True)]
        self.cold -= {node for group in wanted.groups for node in group}
        self.moved *= 1 - self.drift
        size = max(map(len, wanted.groups))
        took = 15 + 2.5 * math.log2(size) + sum(map(len, wanted.groups)) / 100
        self.seconds += max(took, HANG_SECONDS) if any(each.fault == model.HANG for each in answers) else took
        return answers

    def _shares(self, wanted):
        """What the uplinks leave of each group's speed."""
        domains, flows = self.fleet.domains, {}
        inside = [{domains[node] for node in group} for group in wanted.groups]
        for group, there in zip(wanted.groups, inside, strict=True):
            for node in group if len(there) > 1 else ():
                flows[domains[node]] = flows.get(domains[node], 0) + 1
        size = leaf(self.count)
        room = {domain: size * self.room.get(domain, 1.0) / self.oversubscribed for domain in flows}
        return [
            min((min(1.0, room[domain] / flows[domain]) for domain in there), default=1.0) if len(there) > 1 else 1.0
            for there in inside
        ]

    def _parts(self, kind, group):
        """The losses of the parts that a run uses."""
        if kind == model.SOLO:
            return [self.alone[node] for node in group if node in self.alone]
        edges = list(zip(group, (*group[1:], group[0]), strict=True))
        paths = [self.path.get(tuple(sorted(edge))) for edge in edges]
        domains = self.fleet.domains
        links = [self.link.get(tuple(sorted((domains[a], domains[b])))) for a, b in edges]
        return [each for each in [*(self.node.get(node) for node in group), *paths, *links] if each]

    def _run(self, kind, group, share):
        parts = self._parts(kind, group)
        if fault := next((each.fault for each in parts if each.fault), ""):
            return GroupResult((), fault)
        far = len({self.fleet.domains[node] for node in group}) > 1
        usual = 100.0 * self.moved * share * (1 - ACROSS if far else 1) * (1 - COLD if self.cold & set(group) else 1)
        common = self._noisy(2)
        return GroupResult(
            tuple(
                usual
                * min((each.rails[rail] for each in parts), default=1.0)
                * math.exp(common + self._noisy(2 * RAILS))
                for rail in range(RAILS)
            )
        )

    def _noisy(self, share):
        chance, depth = self.fall
        return self.rng.gauss(0, self.noise * math.sqrt(0.5)) - depth * (self.rng.random() < chance / share)


def searched(fleet, more=0, answer=None):
    """Carry out a search on such a fleet, or with other answers. Return its result."""
    search, answer = Search(fleet.fleet, more), answer or fleet.answer
    while planned := search.next_round():
        search.add(planned, answer(planned))
    return search.result()
