"""Lets the reporters of NODES nodes see a fault in the same second, each with the token and the rights of its own node, and then
nothing new for MINUTES of a clock that does not wait; counts requests. Needs NODETUNE_TEST_KUBECONFIG (an administrator of a
real API server in which the guard is not installed); without it, the smallest size asks a substitute."""

import os
import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.support.measuring import COUNT, UnavailableError, benchmark
from nodetune.guard.node.condition import ALL, LOOKS, TYPE, CheckResults, RecentChecks
from nodetune.guard.node.node_status import ApiRefusedError, Server
from nodetune.guard.node.report import NodeReporter
from nodetune.remote.kubernetes import api
from tests.support.condition_server import ApiServer
from tests.support.simulated_nodes import SimulatedNodes

AT_A_TIME = 64
LOOK_SECONDS, TICK_SECONDS = 30, 5
FAULT = CheckResults({"gpu-lost": "GPU3: lost"})
WITHIN = 60
"""Seconds in which every node has its condition."""


class Substitute:
    """One server for nodes that it believes in."""

    def __init__(self, server, count):
        self.names = [f"n{number}" for number in range(count)]
        self._server = server

    def server(self, _name):
        return Server("127.0.0.1", self._server.port, str(self._server.folder))

    def conditions(self):
        found = {}
        for path, _, body in self._server.requests:
            told = {each["type"]: each["status"] for each in body.get("status", {}).get("conditions", ())}
            found |= {path.split("/")[4]: told[TYPE]} if TYPE in told else {}
        return found


class Node:
    """A node, with the program of its reporter; it asks in a thread instead of a child process."""

    def __init__(self, name, server, sent):
        self._server, self._sent, self.refused = server, sent, 0
        self.reporter = NodeReporter(name, self, RecentChecks([ALL]))

    def _asking(self):
        return InThread(self._server.host, self._server.port, self._server.folder)

    def touch(self, *told):
        return self._asking().touch(*told)

    def tell(self, *told):
        self._asking().tell(*told)

    def patch(self, *told):
        begin = time.perf_counter()
        try:
            return self._asking().patch(*told)
        except ApiRefusedError:
            self.refused += 1
            raise
        finally:
            self._sent.append((begin, time.perf_counter() - begin))


class InThread(Server):
    def _ask(self, method, path, body=None):
        try:
            why, wait, said = self._send(method, path, body)
        except OSError as problem:
            raise ApiRefusedError(str(problem)) from None
        if why:
            raise ApiRefusedError(why, wait)
        return said


@benchmark(__doc__, count=20, minutes=12, speed=20.0)
@click.argument("count", metavar="[NODES]", default=2000, type=COUNT)
@click.argument("minutes", default=30, type=COUNT)
@click.option("--speed", default=1.0, help="How fast the clock of the reporters is until all have written.")
def main(count, minutes, speed):
    sent = []
    with cluster(count) as nodes, ThreadPoolExecutor(AT_A_TIME) as pool, Path(os.devnull).open("w") as null:
        every = [Node(name, nodes.server(name), sent) for name in nodes.names]

        def step(look, now):
            with redirect_stdout(null):
                list(pool.map(lambda node: node.reporter.step(look, now), every))

        begin = time.perf_counter()
        for _ in range(LOOKS):
            step(FAULT, 0.0)
        while time.perf_counter() < begin + WITHIN and len(sent) < count:
            time.sleep(0.05)
            step(None, (time.perf_counter() - begin) * speed)
        seconds = max(at + took for at, took in sent) - begin
        right = sum(status == "True" for status in nodes.conditions().values())
        memory, first = peak(), len(sent)
        for second in range(0, 60 * minutes, TICK_SECONDS):
            step(None if second % LOOK_SECONDS else FAULT, WITHIN * speed + second)
        grown = peak() - memory
    refused = sum(node.refused for node in every)
    slowest = sorted(took for _, took in sent)[len(sent) * 99 // 100]
    busiest = max(Counter(int(at - begin) for at, _ in sent[:first]).values())
    print(
        f"{len(sent)} requests: 99 % answered in {1000 * slowest:.0f} ms, {refused} refused; {memory} MiB, {grown} more later"
    )
    rate = (len(sent) - first) / count / minutes
    figure = f"{right} of {count} in {seconds:.0f} s, at most {busiest} a second; {rate:.2f} a node and minute"
    if right != count or refused:
        sys.exit(figure)
    return {"kubernetes_nodes": figure}


@contextmanager
def cluster(count):
    """The nodes, in a cluster or in a substitute for one."""
    config = os.environ.get("NODETUNE_TEST_KUBECONFIG")
    with tempfile.TemporaryDirectory() as folder:
        if config:
            os.environ["KUBECONFIG"] = config
            with SimulatedNodes(api.connected(None), count, Path(folder)).made() as nodes:
                yield nodes
        elif count > 100:
            raise UnavailableError("NODETUNE_TEST_KUBECONFIG names no cluster")
        else:
            with ApiServer(Path(folder)).running() as server:
                yield Substitute(server, count)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
