"""Whether every RDMA port reaches every other of its fabric, and how long a message takes there and back.

What: metric `reached`: the ports of other hosts that answered a port, by datagrams as long as the MTU of both allows; `round_trip`:
of such a message, in µs, of the quarter of them that is nearest, with what two programs add. Ports of one link layer are asked that share an
InfiniBand subnet prefix or an IP network; those that share it with no other host are routed, and ask all others like them.
How: datagrams (queue pairs of type UD) by libibverbs; one process a host asks from all its ports and answers. Rounds of
SLOT seconds, in each of which a port asks one other and is asked by that one: 512 ports have all met in 511 rounds. What did not
answer is asked again in TRIES - 1 further passes, also with SMALL bytes. A port that is down counts if another host has it active.
Statistic: the first quartile over the ports that answered.
Manually: ibv_ud_pingpong -d DEVICE -i PORT -g INDEX -s 1024 on one host, and the same with its address at the end on the other
"""

import collections
import concurrent.futures
import fcntl
import ipaddress
import socket
import struct
import threading
import time
import typing

from nodetune.onhost import files
from nodetune.measurements.host import pairs, verbs
from nodetune.measurements.host import report as reporting
from . import rdma

SECONDS = 180.0
SCOPE = "pair"
ORDER = 128
SUITES = {}
BY_NAME = True
TOLERANCE = {"": {"peers": 200, "baseline": 100, "drift": 30}, "reached": {"peers": 100, "baseline": 100, "drift": 1}}
SUSPECT = "{subject}: its cable, its switch port, or the load of its host"
ALL_PAIRS_SECONDS = 180
START_SECONDS = 60.0
SLOT, TRIES, PAUSE, SMALL = 0.005, 4, 1.0, 64
RESOLVERS = 64
SIOCGIFNETMASK = 0x891B
ROUTED = "routed"
LONGEST_PREFIX = 29
"""An IPv4 network of fewer addresses joins an adapter and its switch: what is beyond it is routed."""

MAX_PORTS_A_HOST, GID_BYTES = 64, 16
HEAD = struct.Struct("!BxHHxxI")
"""Kind, the number of the port that sends, that of the one that is meant, token."""

ASK, ANSWER = 1, 2


class Member(typing.NamedTuple):
    """A port of the run: the index of its host, its name, its conditions. Its number is its place in the list of all."""

    host: int
    name: str
    about: dict


def measure(options, report):
    """Measure. Options: devices, gid_index."""
    if len(report.hosts) < 2:
        raise reporting.SkipError("two hosts are needed: select more")
    own = rdma.every_port(options)
    if not own:
        raise reporting.SkipError("no RDMA adapter on this host")
    opened = _opened(options, report, own)
    report.step("waiting for the ports of the others")
    members = _members(report, own)
    fabrics = grouped(members)
    mine = {number: opened[each.name] for number, each in enumerate(members) if _is_own(report, each, opened)}
    asked = {own: whom for _, numbers in fabrics for own, whom in schedule(numbers, members).items() if own in mine}
    report.step("resolving addresses")
    ends, problems = _ends(mine, asked, members)
    mesh = Mesh(ends, asked, [each.about.get("mtu", 0) for each in members])
    _play(report, mesh)
    _record_down(report, members)
    for fabric, numbers in fabrics:
        for number in set(numbers) & set(mine):
            _record(report, members, number, mesh, {"fabric": fabric, "problem": problems.get(number)})


def _is_own(report, member, opened):
    return member.host == report.self and member.name in opened


def _opened(options, report, own):
    """Open the active ports, and add to `own` what others need to reach them. Return {name: verbs.Port}."""
    library, found = verbs.Verbs(), {}
    for name, about in own.items():
        if about["state"] != rdma.ACTIVE:
            continue
        device, _, number = name.partition("/")
        folder = "{}/{}/ports/{}".format(rdma.CLASS, device, number)
        index = options.get("gid_index", rdma.gid_index(folder)) if about["layer"] == "Ethernet" else None
        gid = files.text("{}/gids/{}".format(folder, index or 0))
        if about["layer"] == "Ethernet" and index is None:
            report.failed("no RoCE v2 address", _subject(report, name))
            continue
        try:
            found[name] = verbs.Port(library, device, int(number), index, gid)
        except reporting.MeasurementError as problem:
            report.failed(str(problem), _subject(report, name))
            continue
        netdev = files.text("{}/gid_attrs/ndevs/{}".format(folder, index or 0))
        about.update(found[name].known, network=network(gid, about["layer"], netdev))
    return found


def network(gid, layer, netdev):
    """Return the network that ports must share to be of one fabric: a prefix, a network, or ROUTED."""
    address = ipaddress.IPv6Address(gid)
    if layer != "Ethernet" or address.ipv4_mapped is None:
        return gid[:19]
    bits = _prefix(netdev)
    if bits > LONGEST_PREFIX:
        return ROUTED
    return str(ipaddress.IPv4Interface("{}/{}".format(address.ipv4_mapped, bits)).network)


def _prefix(netdev):
    """Return the bits of the netmask of an interface; 32 if it has none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            answer = fcntl.ioctl(sock.fileno(), SIOCGIFNETMASK, struct.pack("256s", netdev.encode()[:15]))
    except OSError:
        return 32
    return bin(struct.unpack("!I", answer[20:24])[0]).count("1")


def _subject(report, name):
    return "{} {}".format(name, report.hosts[report.self])


def _members(report, own):
    """Exchange the ports of all hosts. Return them as members, in the same order on each host."""
    report.tell("ports", own)
    found, end = {report.self: own}, time.monotonic() + min(START_SECONDS, report.left() / 2)
    for index in range(len(report.hosts)):
        if index != report.self:
            try:
                found[index] = checked(report.hear("ports", end - time.monotonic(), index), report.hosts[index])
            except (reporting.SkipError, reporting.MeasurementError) as problem:
                report.note(str(problem))
    if len(found) < 2:
        raise reporting.SkipError("no other host with an RDMA adapter")
    return [Member(host, name, found[host][name]) for host in sorted(found) for name in sorted(found[host])]


def checked(told, host):
    """Return another host's ports if their form is right. Raise MeasurementError."""
    try:
        sound = len(told) <= MAX_PORTS_A_HOST and all(map(_is_sound, told.values()))
    except (AttributeError, KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise reporting.MeasurementError("{}: it offers no ports".format(host))
    return told


def _is_sound(about):
    if "qpn" not in about:
        return isinstance(about["layer"], str) and isinstance(about["state"], str)
    texts = all(isinstance(about[key], str) for key in ("layer", "state", "network", "gid"))
    numbers = 0 <= about["qpn"] < 1 << 24 and 0 <= about["lid"] < 1 << 16 and SMALL < about["mtu"] <= verbs.LARGEST
    return texts and numbers and len(bytes.fromhex(about["gid"])) == GID_BYTES


def grouped(members):
    """Return the fabrics: [(name, numbers of the ports)]. Ports whose network no other host has are routed to all others like them."""
    by_network = collections.defaultdict(list)
    for number, each in enumerate(members):
        if "qpn" in each.about:
            by_network[each.about["layer"], each.about["network"]].append(number)
    merged = collections.defaultdict(list)
    for (layer, shared), numbers in sorted(by_network.items()):
        alone = len({members[number].host for number in numbers}) < 2
        merged[layer, ROUTED if alone else shared] += numbers
    return [(name, sorted(numbers)) for (_, name), numbers in sorted(merged.items())]


def schedule(numbers, members):
    """Return {port: whom it asks in each round, or None}. In no round has a port two partners; those of its own host are left out."""
    played = pairs.rounds(len(numbers), 0)
    found = {number: [None] * len(played) for number in numbers}
    for place, round_ in enumerate(played):
        for one, other in ((numbers[first], numbers[second]) for first, second in round_):
            if members[one].host != members[other].host:
                found[one][place], found[other][place] = other, one
    return found


class End:
    """A port with its ways to the others."""

    def __init__(self, port, ways):
        self._port, self._ways = port, ways
        self.take = port.take

    def send(self, other, data):
        if other in self._ways:
            self._port.send(self._ways[other], data)


def _ends(mine, asked, members):
    """Return ({number: End}, {number: why a way could not be made}). Many at once: an address that does not resolve takes seconds."""
    with concurrent.futures.ThreadPoolExecutor(RESOLVERS) as pool:
        tried = {
            (number, other): pool.submit(mine[number].way_to, members[other].about)
            for number, others in asked.items()
            for other in others
            if other is not None
        }
    ways, problems = {number: {} for number in asked}, {}
    for (number, other), way in tried.items():
        if way.exception() is None:
            ways[number][other] = way.result()
        else:
            problems[number] = str(way.exception())
    return {number: End(mine[number], found) for number, found in ways.items()}, problems


class Mesh:
    """Asks from each own port, and answers the others. `answered`: {own: {other: seconds}}; `short`: {own: {other}}.

    `ends`: {own number: End}; `asked`: {own number: whom it asks in each round}; `mtus`: bytes of each port.
    """

    def __init__(self, ends, asked, mtus, clock=time.monotonic):
        self._ends, self._asked, self._mtus, self._clock = ends, asked, mtus, clock
        self.answered, self.short = {own: {} for own in asked}, {own: set() for own in asked}
        self._sent, self._token = {}, 0

    def turns(self):
        """Ask all, and again those that did not answer. Yield the time until which to answer, after each round and while waiting."""
        for attempt in range(TRIES):
            for number in range(max(map(len, self._asked.values()), default=0)):
                begun = self._clock()
                if self._ask_round(number, attempt):
                    yield begun + SLOT
            end = self._clock() + PAUSE
            while self._clock() < end and not self._is_done():
                yield self._clock() + SLOT

    def asked_of(self, own):
        """Return whom a port asks."""
        return [each for each in self._asked[own] if each is not None]

    def _is_done(self):
        return all(len(self.answered[own]) == len(self.asked_of(own)) for own in self._asked)

    def _ask_round(self, number, attempt):
        """Ask in one round. Return whether anything was asked."""
        asked = False
        for own, others in self._asked.items():
            other = others[number] if number < len(others) else None
            if other is None or other in self.answered[own]:
                continue
            asked = True
            self._ask(own, other, min(self._mtus[own], self._mtus[other]))
            if attempt and other not in self.short[own]:
                self._ask(own, other, SMALL)
        return asked

    def _ask(self, own, other, size):
        self._token += 1
        self._sent[self._token] = (own, other, size, self._clock())
        self._ends[own].send(other, HEAD.pack(ASK, own, other, self._token).ljust(size, b"\0"))

    def answer_until(self, end):
        """Take what arrives until then, at least once."""
        while True:
            for own, each in self._ends.items():
                for data in each.take():
                    self._take(own, each, data)
            if self._clock() >= end:
                return

    def _take(self, own, end, data):
        if len(data) < HEAD.size:
            return
        kind, other, meant, token = HEAD.unpack_from(data)
        if meant != own:  # two fabrics may have the same addresses
            return
        if kind == ASK:
            end.send(other, HEAD.pack(ANSWER, own, other, token) + data[HEAD.size :])
        elif kind == ANSWER and self._sent.get(token, ())[:3] == (own, other, len(data)):
            if len(data) > SMALL:
                self.answered[own].setdefault(other, self._clock() - self._sent[token][3])
            else:
                self.short[own].add(other)


def _play(report, mesh):
    """Ask all, and answer the others until they have asked all, in a thread: the messages of the run are waited for meanwhile."""
    asked, over = threading.Event(), threading.Event()

    def work():
        for end in mesh.turns():
            mesh.answer_until(end)
        asked.set()
        while not over.is_set():
            mesh.answer_until(0)

    report.tell("ready")
    _hear_all(report, "ready", START_SECONDS)
    report.step("asking")
    threading.Thread(target=work, daemon=True).start()
    asked.wait(max(0.0, report.left() - 1))
    report.tell("asked")
    _hear_all(report, "asked", report.left() - 1)
    over.set()


def _hear_all(report, topic, seconds):
    """Wait for all that are still there."""
    end = time.monotonic() + seconds
    for index in range(len(report.hosts)):
        if index != report.self:
            try:
                report.hear(topic, end - time.monotonic(), index)
            except (reporting.SkipError, reporting.MeasurementError):
                continue


def _record_down(report, members):
    """Report the own ports that are down, but active on other hosts: on those where nobody has a cable, none is missing."""
    active = collections.Counter(each.name for each in members if each.about["state"] == rdma.ACTIVE)
    for each in members:
        if each.host == report.self and each.about["state"] != rdma.ACTIVE and active[each.name]:
            about = dict(each.about, of=active[each.name])
            report.result(_subject(report, each.name), [0], "ports", metric="reached", **about)


def _record(report, members, number, mesh, more):
    own, subject = members[number], _subject(report, members[number].name)
    others, answered = mesh.asked_of(number), mesh.answered[number]
    if not others:
        report.skip("no other host has such a port", subject)
        return
    lost = [each for each in others if each not in answered]
    short = [each for each in lost if each in mesh.short[number]]
    about = {key: own.about[key] for key in ("rate", "layer", "software", "state", "bdf", "mtu")}
    about.update(more, of=len(others), short_only=_names(report, members, short))
    about["unreached"] = _names(report, members, [each for each in lost if each not in short])
    report.result(subject, [len(answered)], "ports", metric="reached", **about)
    if answered:
        nearest = sorted(answered.values())[(len(answered) - 1) // 4]
        report.result(subject, [nearest * 1e6], "µs", "lower", metric="round_trip", **about)


def _names(report, members, numbers):
    return ["{} {}".format(members[each].name, report.hosts[members[each].host]) for each in numbers]
