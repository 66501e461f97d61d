"""Round trip of a small TCP message between pairs of hosts: what the network, its interrupts and sleeping cores add.

What: one connection; BYTES there and back, one after the other, in µs. metric `median`: of half the round trips; `p99`:
exceeded by one in a hundred.
How: the hosts of the run meet in rounds, and take their network, as tcp does. One host returns each message, the other
sends and waits; both with TCP_NODELAY. A constant share of some µs is the system calls and Python.
Statistic: the median of the repeats.
Manually: sockperf server --tcp on one host, sockperf ping-pong --tcp -i ADDRESS -m 64 -t 2 on the other (it prints half of a
round trip).
"""

import contextlib
import gc
import socket
import threading
import time

from nodetune.measurements.host import pairs
from nodetune.measurements.host import report as reporting
from . import wakeup

SECONDS = 60.0
SCOPE = "pair"
ORDER = 125
SUITES = {}
TOLERANCE = {
    "": {"peers": 50, "baseline": 30, "drift": 10},
    "p99": {"peers": 400, "baseline": 200, "drift": 50},
}
SUSPECT = "{subject}: interrupt moderation, idle states (C-states), or a longer path"
ALL_PAIRS_SECONDS = 240
BYTES = 64
SECONDS_A_SAMPLE = 2.0
WAIT = 5.0


def measure(options, report):
    """Measure. Options: rounds, seconds (a sample), repeats, and those of pairs."""
    pairs.play(
        report,
        options,
        lambda: _server(options, report),
        lambda here, there, known, at_once: _ask(options, report, (here, there, known, at_once)),
    )


@contextlib.contextmanager
def _server(options, report):
    """Return messages while the context lasts. Yield what the client must know."""
    with pairs.offer(report, options) as known, contextlib.closing(socket.socket()) as server:
        server.bind(("", 0))
        server.listen(1)
        threading.Thread(target=_return_messages, args=(server,), daemon=True).start()
        try:
            yield dict(known, ports=[server.getsockname()[1]])
        finally:
            server.shutdown(socket.SHUT_RDWR)  # closing alone would not end a waiting accept


def _return_messages(server):
    with contextlib.suppress(OSError):  # the context has ended, or the client has gone
        while True:
            connection, _ = server.accept()
            with contextlib.closing(connection):
                connection.settimeout(WAIT)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                message = connection.recv(BYTES)
                while message:
                    connection.sendall(message)
                    message = connection.recv(BYTES)


def _ask(options, report, pair):
    here, there, known, at_once = pair
    address, gbits = pairs.way_to(known, there)
    (port,) = pairs.ports_of(known.get("ports"), there)[:1]
    seconds, repeats = float(options.get("seconds", SECONDS_A_SAMPLE)), int(options.get("repeats", 3))
    try:
        with contextlib.closing(socket.create_connection((address, port), WAIT)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found = [wakeup.summary(round_trips(connection, seconds)) for _ in range(repeats)]
    except OSError as problem:
        raise reporting.MeasurementError("{} at {}: {}".format(there, address, problem))
    about = {"link": gbits, "interface": pairs.interface_to(address), "address": address, "pairs_at_once": at_once}
    about.update(network=options.get("network"), bytes=BYTES, round_trips=found[0]["count"])
    for metric in ("median", "p99"):
        samples = [each[metric] * 1e6 for each in found]
        report.result("{}→{}".format(here, there), samples, "µs", "lower", metric=metric, **about)


def round_trips(connection, seconds):
    """Return the seconds of each round trip; the first tenth of the time is left out. Raise OSError."""
    message, found, clock = bytes(BYTES), [], time.perf_counter
    gc.disable()
    begin, end = clock() + seconds / 10, clock() + seconds
    while clock() < end:
        sent = clock()
        connection.sendall(message)
        left = BYTES
        while left:
            part = len(connection.recv(left))
            if not part:
                raise OSError("it closed the connection")
            left -= part
        came = clock()
        if sent >= begin:
            found.append(came - sent)
    if not found:
        raise OSError("no message came back within {:g} s".format(seconds))
    return found
