"""From which RDMA ports reach which to the smallest explanation: a port, a path, two parts of a fabric. Pure.

Ports that miss the same others are one side. So what is lost falls into pairs of sides, of which no port of one reaches any
of the other: exactly, and in as few as possible. Rails that are apart are no fault: they join the same hosts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from nodetune.api.device import Device
from nodetune.foundation import by_key, nodeset, text
from nodetune.verify.model import SHORT, Figure, VerifyFinding

MEASUREMENT, METRIC = "rdma_reach", "reached"
PORT, PATH, SPLIT, MTU = FAULTS = ("rdma-port-unreached", "rdma-path-broken", "rdma-fabric-split", "rdma-mtu-unequal")
ACTIVE = "ACTIVE"
REACHED, SHORT_ONLY, LOST = range(3)

NEXT = {
    PORT: "rdma link; mlxlink -d DEVICE: its cable, its switch port, its address, its VLAN or partition",
    PATH: "routes, firewalls and access lists between them (RoCE); ibtracert, the cables on its path (InfiniBand)",
    SPLIT: "the links between the switches of both sides; VLANs and routes (RoCE), partitions (InfiniBand)",
    MTU: "ip link show; the MTU of the adapters, and of each switch port between them",
}


@dataclass(frozen=True)
class Port:
    """A port of the run. `unreached` and `short` name those that did not answer, or only to short messages."""

    host: str
    name: str
    bdf: str
    state: str
    fabric: str
    mtu: int
    unreached: frozenset[str]
    short: frozenset[str]

    @property
    def title(self) -> str:
        return f"{self.name} of {self.host}" + (f" ({self.bdf})" if self.bdf else "")


Missed = Mapping[str, frozenset[str]]
"""Port → the ports that it misses: each of two, or none."""


def path(one: str, other: str) -> str:
    """Return the name of the path between two hosts."""
    return "path " + " - ".join(sorted((one, other)))


def is_of_port(figure: Figure) -> bool:
    """Return whether a figure is the count of ports that a port reached: what is missing becomes a finding."""
    return (figure.measurement, figure.metric) == (MEASUREMENT, METRIC)


def places(measured: Iterable[Figure], met: Iterable[str]) -> frozenset[str]:
    """Return the names of what these figures of a host judge: its ports, their fabrics, its paths to the hosts that it met."""
    ports = [(figure.host, _port(figure)[1]) for figure in measured if is_of_port(figure)]
    paths = {path(host, other) for host, _ in ports[:1] for other in met if other != host}
    return frozenset(paths.union(*({port.name, port.fabric} for _, port in ports)))


def findings(measured: Iterable[Figure]) -> list[VerifyFinding]:
    """Return what explains that ports did not reach each other, the fewest that do."""
    ports = dict(_port(each) for each in measured if is_of_port(each))
    fabrics = by_key((each.fabric, (name, each)) for name, each in ports.items() if each.state == ACTIVE)
    down = [
        _of_port(PORT, each, f"is {each.state}, but active on other hosts")
        for each in ports.values()
        if each.state != ACTIVE
    ]
    whole = [Fabric(dict(members)) for members in fabrics.values()]
    return [*down, *(found for each in whole for found in each.of_ports()), *_merged(whole)]


def _port(figure: Figure) -> tuple[str, Port]:
    about = figure.about
    bdf, state, fabric = (text.plain(about.get(key) or "", 60) for key in ("bdf", "state", "fabric"))
    mtu = about.get("mtu")
    lists = (about.get(key) for key in ("unreached", "short_only"))
    unreached, short = (frozenset(map(str, each)) if isinstance(each, list) else frozenset() for each in lists)
    name = figure.subject.rpartition(" ")[0]
    return figure.subject, Port(
        figure.host, name, bdf, state, fabric, mtu if isinstance(mtu, int) else 0, unreached, short
    )


def _of_port(fault: str, port: Port, what: str) -> VerifyFinding:
    device = Device(port.name, port.bdf, kind="port")
    return VerifyFinding(fault, port.host, SHORT, f"{port.title} {what}", next=NEXT[fault], device=device)


class Fabric:
    """The ports that should all reach each other, those of one host excepted."""

    def __init__(self, ports: Mapping[str, Port]) -> None:
        self.ports = ports

    def _grade(self, one: str, other: str) -> int:
        """Return what came through between two ports: the better of what both say, as one answer proves both ways."""
        ends = ((self.ports[one], other), (self.ports[other], one))
        return min(LOST if far in end.unreached else SHORT_ONLY if far in end.short else REACHED for end, far in ends)

    def _missed(self, grade: int) -> Missed:
        return {
            name: frozenset(far for far in port.unreached | port.short if self._are_two(name, far, grade))
            for name, port in self.ports.items()
        }

    def _are_two(self, name: str, far: str, grade: int) -> bool:
        return far in self.ports and self._grade(name, far) == grade

    @cached_property
    def _lost(self) -> Missed:
        return self._missed(LOST)

    def _others(self, name: str) -> frozenset[str]:
        return frozenset(far for far, port in self.ports.items() if port.host != self.ports[name].host)

    @cached_property
    def _dead(self) -> frozenset[str]:
        """The ports that reach none and are reached by none. Of two ports alone, neither is known to be the one."""
        dead = frozenset(name for name in self.ports if self._others(name) and self._others(name) <= self._lost[name])
        return dead if len(self.ports) > 2 else frozenset()

    def of_ports(self) -> Iterator[VerifyFinding]:
        """Yield the ports that are explanations by themselves, or that none reaches another."""
        if self._is_silent:
            port = self.ports[min(self.ports)]
            told = f"none of {len(self.ports)} ports of {self._title} reaches another"
            yield VerifyFinding(
                SPLIT, port.host, SHORT, told, next=NEXT[SPLIT], device=Device(self._title, kind="link")
            )
            return
        for name in sorted(self._dead):
            count = text.count(len(self._others(name)), "port")
            yield _of_port(PORT, self.ports[name], f"reaches none of {count} of {self._title}, and none reaches it")
        usual = self._usual_mtu
        for port in self.ports.values():
            if port.mtu < usual:
                yield _of_port(MTU, port, f"has an MTU of {port.mtu} bytes, the others of {self._title} have {usual}")

    @property
    def _is_silent(self) -> bool:
        return len(self._dead) == len(self.ports)

    @property
    def _title(self) -> str:
        return self.ports[min(self.ports)].fabric or "its fabric"

    @property
    def _usual_mtu(self) -> int:
        """Return the MTU of most ports; the larger one if as many have another."""
        counts = Counter(port.mtu for port in self.ports.values())
        return max(counts, key=lambda mtu: (counts[mtu], mtu))

    def sides(self) -> Iterator[tuple[str, list[Port], list[Port]]]:
        """Yield (what is missing, two sides between which it is), for all that single ports do not explain."""
        living = {name: missed - self._dead for name, missed in self._lost.items() if name not in self._dead}
        rails = _rails(living, self.ports)
        lost = {name: frozenset(far for far in missed if not rails(name, far)) for name, missed in living.items()}
        for what, missed in ((LOST, lost), (SHORT_ONLY, self._missed(SHORT_ONLY))):
            for one, other in _sides(missed):
                both = sorted(([self.ports[name] for name in side] for side in (one, other)), key=len)
                few, many = both
                yield (MTU if what == SHORT_ONLY else _fault(few, many)), few, many


def _fault(few: Sequence[Port], many: Sequence[Port]) -> str:
    return PATH if 1 in (len(_hosts(few)), len(_hosts(many))) else SPLIT


def _hosts(side: Iterable[Port]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(port.host for port in side))


def _sides(missed: Missed) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the pairs of sides. Ports that miss the same are alike: if one is missed, all of its side are."""
    alike = by_key((each, name) for name, each in missed.items() if each)
    for far, side in alike.items():
        for other in alike.values():
            if other[0] in far and side[0] < other[0]:
                yield side, other


def _rails(lost: Missed, ports: Mapping[str, Port]) -> Callable[[str, str], bool]:
    """Return whether two ports are of rails that are apart: of parts that have a host in common, or that other parts join so."""
    parts = _parts(lost, ports)
    of = {name: number for number, names in enumerate(parts) for name in names}
    hosts = [{ports[name].host for name in names} for names in parts]
    named = [{ports[name].name for name in names} for names in parts]

    def apart(one: int, other: int) -> bool:
        alike = [each for each in range(len(parts)) if named[each] & named[one] and hosts[each] & hosts[other]]
        return bool(hosts[one] & hosts[other]) or (not named[one] & named[other] and bool(alike))

    return lambda one, other: of[one] != of[other] and apart(of[one], of[other])


def _parts(lost: Missed, ports: Mapping[str, Port]) -> list[set[str]]:
    """Return the parts that hang together: between two of them nothing came through."""
    left, found = set(lost), []
    while left:
        part, waiting = set(), [min(left)]
        while waiting:
            name = waiting.pop()
            part.add(name)
            left.discard(name)
            near = {far for far in left - lost[name] if ports[far].host != ports[name].host}
            left -= near
            waiting += near
        found.append(part)
    return found


def _merged(fabrics: Iterable[Fabric]) -> Iterator[VerifyFinding]:
    """Yield what lies between the same hosts once, over all its fabrics."""
    every = by_key(
        ((fault, _hosts(few), _hosts(many)), (few, many)) for each in fabrics for fault, few, many in each.sides()
    )
    for (fault, few_hosts, many_hosts), between in every.items():
        one, other = (_title([port for sides in between for port in sides[number]]) for number in (0, 1))
        ends = few_hosts[0], next(host for host in many_hosts if host != few_hosts[0])
        what = "reach each other only by short messages" if fault == MTU else "do not reach each other"
        device = Device(path(*ends), kind="link")
        yield VerifyFinding(fault, ends[0], SHORT, f"{one} and {other} {what}", (), NEXT[fault], ends, device)


def _title(side: Sequence[Port]) -> str:
    if len(side) == 1:
        return side[0].title
    return f"{text.names(list(dict.fromkeys(port.name for port in side)))} of {nodeset.fold(_hosts(side))}"
