"""RDMA write bandwidth between pairs of hosts, adapter by adapter, by perftest's ib_write_bw.

What: payload of RDMA writes, in Gb/s, each direction for itself, for each active port of each adapter: mlx5_0 of one host
with the adapter of the same name of the other (option `devices` names them; a port is not measured where the other host has
no such one). Buffers are in host memory; what GPUs reach through the fabric is NCCL's part.
How: the hosts of the run meet in rounds (see tcp). One host runs the server on a free port, one test long; the other one
is the client. Each direction and repeat is one run of SECONDS_A_RUN with messages of 1 MiB, on the CPUs and so in the
memory of the adapter's NUMA node. Then one run of all ports at once: metric `together` is the sum of what they carry, and
`together_share` that sum in % of what each carries alone, summed up. Ports that share a PCIe link or switch stay below 100.
Statistic: the median of the repeats.
Manually: numactl -N NODE -m NODE ib_write_bw -d DEVICE -i PORT -s 1048576 -q 2 -D 3 -F --report_gbits (RoCE: and -x with the
index of a RoCE v2 address, show_gids lists them), and on the other host the same with the first one's address at the end.
"""

import contextlib
import os
import re
import statistics
import subprocess

from nodetune.onhost import files
from nodetune.measurements.host import external_tool, numa, pairs
from nodetune.measurements.host import report as reporting

SECONDS = 600.0  # eight ports, three repeats of four seconds, both directions, two rounds: 400
SCOPE = "pair"
ORDER = 130
SUITES = {}
TOLERANCE = {"": {"peers": 5, "baseline": 5, "drift": 1}}
SIZE_MATTERS = True
ALL_PAIRS_SECONDS = 1800
SECONDS_A_RUN = 3
PACKAGE = "perftest"
CLASS = "/sys/class/infiniband"
ACTIVE = "ACTIVE"
IPV4_MAPPED = "0000:0000:0000:0000:0000:ffff:"
COMPLAINT = re.compile(
    r"\b(fail|unable|couldn|could not|cannot|can't|did not|error|invalid|not found|denied|refused)", re.I
)
COMPLETION = re.compile(r"Failed status (\d+)")
COMPLETIONS = {
    4: "local protection error: an IOMMU or the memory limit (ulimit -l) prevents it",
    10: "the other adapter refused access to its memory",
    12: "the other side does not answer: check the path (address and GID, MTU, VLAN, PFC, partition)",
    13: "the other side was not ready to receive",
}
"""The meaning of ibv_wc_status (verbs.h) for troubleshooting."""


def measure(options, report):
    """Measure the bandwidth of each pair.

    Options: rounds, devices, size (bytes), queue_pairs, seconds (a run), repeats, gid_index, and those of pairs.
    """
    program = external_tool.need("ib_write_bw", PACKAGE)
    play(report, options, lanes(options), lambda name, port: command(program, options, name, port), record, summed)


def lanes(options):
    """Return what play measures: the active ports, each as a lane. Raise SkipError if there is none."""
    found = ports(options)
    if not found:
        raise reporting.SkipError("no RDMA adapter with an active port on this host")
    return {name: dict(about, adapter=name) for name, about in found.items()}


def play(report, options, lanes, words, record, together=None):
    """Measure each lane of each pair of hosts.

    `lanes`: {its name in figures: its conditions, with the "adapter" that it uses}; words(name, TCP port): the
    program and its options for one run, to which the client adds an address; record(report, subject, output of the runs,
    conditions): reports the figures; together(report, hosts, outputs of each lane, outputs of all at once): of one more run
    with all lanes at once.
    """
    pairs.play(
        report,
        options,
        lambda: servers(report, options, lanes, words, _runs(options, together)),
        lambda here, there, known, at_once: _ask(
            report, options, (lanes, words, record, together), (here, there, known, at_once)
        ),
        both_ways=True,
    )


def _runs(options, together):
    """Return the number of runs of a lane: the repeats, and the one of all lanes at once."""
    return int(options.get("repeats", 3)) + (together is not None)


def record(report, subject, printed, about):
    """Report the bandwidth of a lane."""
    report.result(subject, [read(text) for text in printed], "Gb/s", **about)


def summed(report, hosts, alone, at_once):
    """Report what all ports carry at once: the sum, and its share of the sum of each alone."""
    apart = sum(statistics.median_high(map(read, printed)) for printed in alone)
    together = sum(map(read, at_once))
    subject = "{} ports {}".format(len(at_once), hosts)
    report.result(subject, [together], "Gb/s", metric="together")
    report.result(subject, [100.0 * together / apart], "%", metric="together_share")


def ports(options):
    """Return the active ports.

    Example: {"mlx5_0/1": {"rate": Gb/s, "layer": "InfiniBand" or "Ethernet", "software": bool}}. Software devices (rxe,
    siw) state a rate (2.5) that means nothing.
    """
    return {
        name: {key: about[key] for key in ("rate", "layer", "software")}
        for name, about in every_port(options).items()
        if about["state"] == ACTIVE
    }


def every_port(options):
    """Return all ports: as `ports`, with the "state" and the "bdf" of the adapter (empty for software)."""
    found = {}
    for device in files.names(CLASS):
        if options.get("devices") and device not in options["devices"]:
            continue
        for port in files.names("{}/{}/ports".format(CLASS, device)):
            folder = "{}/{}/ports/{}/".format(CLASS, device, port)
            place = "{}/{}/device".format(CLASS, device)
            software = not os.path.exists(place)
            found[device + "/" + port] = {
                "rate": None if software else _rate(files.text(folder + "rate")),
                "layer": files.text(folder + "link_layer"),
                "software": software,
                "state": files.text(folder + "state").partition(" ")[2],
                "bdf": "" if software else os.path.basename(os.path.realpath(place)),
            }
    return found


def _rate(text):
    """Parse `400 Gb/sec (4X NDR)` as 400.0."""
    number = re.match(r"[\d.]+", text)
    return float(number.group()) if number else None


def gid_index(folder):
    """Return the index of a RoCE port's RoCE v2 address with IPv4, else of any RoCE v2 address, or None."""
    types = sorted((int(name) for name in files.names(folder + "/gid_attrs/types") if name.isdigit()))
    routable = [each for each in types if files.text("{}/gid_attrs/types/{}".format(folder, each)) == "RoCE v2"]
    mapped = [each for each in routable if files.text("{}/gids/{}".format(folder, each)).startswith(IPV4_MAPPED)]
    return (mapped or routable or [None])[0]


def command(program, options, name, port):
    """Return one run on one port of an adapter; both sides differ only in the address at the end."""
    given = endpoint(program, options, name, port) + ["--report_gbits"]
    given += ["-s", str(options.get("size", 1 << 20)), "-q", str(options.get("queue_pairs", 2))]
    return given + ["-D", str(options.get("seconds", SECONDS_A_RUN))]


def endpoint(program, options, name, port):
    """Return a program of perftest with its options for a port of an adapter, and for a TCP port."""
    device, _, number = name.partition("/")
    index = options.get("gid_index", gid_index("{}/{}/ports/{}".format(CLASS, device, number)))
    given = [program, "-d", device, "-i", number, "-p", str(port), "-F"]
    return given + (["-x", str(index)] if index is not None else [])


@contextlib.contextmanager
def servers(report, options, lanes, words, runs):
    """Start a server for each run, because each serves one test. Yield what the client must know."""
    found, running = {name: dict(about) for name, about in lanes.items()}, []
    free = pairs.free_ports(len(found) * runs)
    with pairs.offer(report, options) as known:
        try:
            for number, name in enumerate(sorted(found)):
                own_ports = found[name]["ports"] = free[number * runs : (number + 1) * runs]
                commands = [words(name, port) for port in own_ports]
                stay_near(found[name]["adapter"])
                running.extend(external_tool.start(each, stdout=subprocess.DEVNULL) for each in commands)
            pairs.wait_until_listening(free, running, "perftest", explained)
            yield dict(known, ports=found)
        finally:
            for each in running:
                external_tool.stop(each)


def _ask(report, options, what, pair):
    (own, words, record, together), (here, there, known, at_once) = what, pair
    address, _ = pairs.way_to(known, there)
    offered = known.get("ports") if isinstance(known.get("ports"), dict) else {}
    hosts, done = "{}→{}".format(here, there), {}
    for name in sorted(own):
        subject = "{} {}".format(name, hosts)
        other = offered.get(name)
        if not isinstance(other, dict):
            report.skip("{} has no active port for {}".format(there, name), subject)
            continue
        try:
            free = pairs.ports_of(other.get("ports"), there)
            last = [free.pop()] if together and len(free) > 1 else []
            runs = (started(own[name], words(name, port) + [address]) for port in free)
            printed = [ended(process, options) for process in runs]
            record(report, subject, printed, dict(own[name], size=options.get("size", 1 << 20), pairs_at_once=at_once))
            if last:
                done[name] = (printed, words(name, last[0]) + [address])
        except reporting.MeasurementError as problem:
            report.failed(str(problem), subject)
    if len(done) > 1:
        _at_once(report, options, (own, together), hosts, done)


def _at_once(report, options, what, hosts, done):
    """Run at once all lanes that were measured alone. `done`: {lane: (its outputs, the words of one more run)}."""
    own, together = what
    report.step("all ports at once, {}".format(hosts))
    running = []
    try:
        for name, (_, command) in done.items():
            running.append(started(own[name], command))
        printed = [ended(each, options) for each in running]
        together(report, hosts, [alone for alone, _ in done.values()], printed)
    except reporting.MeasurementError as problem:
        report.failed(str(problem), "{} ports {}".format(len(done), hosts), "together")
    finally:
        for each in running:
            external_tool.stop(each)


def started(about, command):
    """Start one side of perftest near its adapter. Raise MeasurementError."""
    stay_near(about["adapter"])
    return external_tool.start(command)


def ended(process, options):
    """Wait for what was started. Return its output. Raise MeasurementError."""
    return external_tool.finish(process, float(options.get("seconds", SECONDS_A_RUN)) + 20, telling=explained)


def stay_near(name):
    """Run programs started from now on near a port's adapter: from the far node, a fast adapter is slower."""
    node, layout = files.number("{}/{}/device/numa_node".format(CLASS, name.partition("/")[0])), numa.nodes()
    numa.run_on(layout.get(node) or [cpu for cpus in layout.values() for cpu in cpus])


def explained(data):
    """Return the line of perftest's output that explains it: the first complaint, since later ones follow from it.

    If a transfer failed, its completion status says more.
    """
    lines = [line.strip() for line in data.decode("utf-8", "backslashreplace").splitlines()]
    complaints = [line for line in lines if COMPLAINT.search(line) and not line.upper().startswith("WARNING")]
    completions = [line for line in complaints if COMPLETION.search(line)]
    if not complaints:
        return external_tool.last_line(data)
    line = (completions or complaints)[0][:300]
    meaning = COMPLETIONS.get(int(COMPLETION.search(line).group(1))) if completions else None
    return line + (" ({})".format(meaning) if meaning else "")


def read(text):
    """Return the average of perftest's table in Gb/s. Raise MeasurementError, also if it is 0."""
    rows = re.findall(
        r"^[ \t]*(\d+)[ \t]+(\d+)[ \t]+([\d.]+)[ \t]+([\d.]+)(?:[ \t]+[\d.]+)*[ \t]*$", text, re.MULTILINE
    )
    if "BW average[Gb/sec]" not in text or not rows:
        raise reporting.MeasurementError("ib_write_bw printed no figures: " + explained(text.encode("utf-8")))
    found = float(rows[-1][3])
    if not found:
        lost = "no message of {} bytes got through: find out what drops them (RoCE: UDP port 4791, MTU, VLAN)"
        raise reporting.MeasurementError(lost.format(rows[-1][0]))
    return found
