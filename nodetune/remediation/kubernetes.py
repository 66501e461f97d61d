"""Taking Kubernetes nodes out of service for a run, and giving them back: as Slurm's drain does with its nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from nodetune.hosts.connection_options import MAX_FORKS, ConnectionOptions
from nodetune.remediation.ansible.events import Event
from nodetune.remote.kubernetes import cordon
from nodetune.remote.kubernetes.api import ApiError, connected

BY = "nodetune apply {}"
Done = list[tuple[str, str, bool]]
"""Steps on one node: what was done, the result or the fault, and whether the node changed."""

Found = TypeVar("Found")


def in_service(connection: ConnectionOptions, host: str) -> str:
    """Return why work on a node must not be disturbed: it gets new pods. Empty if it is cordoned. Raise KubeconfigError."""
    try:
        cordoned = cordon.is_cordoned(connected(connection.options.cluster.context), host)
    except ApiError as problem:
        return f"unknown whether the node is cordoned: {problem}"
    return "" if cordoned else f"Kubernetes may start pods here: kubectl drain {host}, or --drain kubernetes"


class Cordons:
    """The cordons of one run. `heard` is called in this thread with what is done; `stopped` says that Ctrl-C ended it."""

    def __init__(self, connection: ConnectionOptions, run: str, heard: Callable[[Event], None]) -> None:
        self._api, self._by, self._heard = connected(connection.options.cluster.context), BY.format(run), heard
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def drained(self, hosts: Sequence[str], seconds: float) -> tuple[list[str], dict[str, str]]:
        """Cordon nodes and evict their pods. Return the nodes that are cordoned by this run, and node → why pods are left."""
        found = self._each("Drain", hosts, lambda host: self._drained(host, seconds))
        return [host for host, (ours, _) in found.items() if ours], {
            host: why for host, (_, why) in found.items() if why
        }

    def _drained(self, host: str, seconds: float) -> tuple[Done, tuple[bool, str]]:
        ours, done = False, Done()
        try:
            ours = cordon.cordon(self._api, host, self._by)
            done.append(("Cordon", "" if ours else "someone else has cordoned it", ours))
            count, why = cordon.evict(self._api, host, seconds, self._stop)
            done.append(("Evict", why or f"evicted pods: {count}", count > 0))
        except ApiError as problem:
            why = f"drain: {problem}"
            done.append(("Drain", why, False))
        return done, (ours, why)

    def given_back(self, hosts: Sequence[str]) -> dict[str, str]:
        """Uncordon the nodes that this run cordoned. Return node → why it stays as it is."""
        return {host: why for host, why in self._each("Uncordon", hosts, self._given_back).items() if why}

    def _given_back(self, host: str) -> tuple[Done, str]:
        try:
            ours = cordon.uncordon(self._api, host, self._by)
            why = "" if ours else "someone else has cordoned or uncordoned it since"
        except ApiError as problem:
            why = str(problem)
        return [("Uncordon", why, not why)], why

    def _each(self, task: str, hosts: Sequence[str], work: Callable[[str], tuple[Done, Found]]) -> dict[str, Found]:
        for host in hosts:
            self._heard(Event(host, task, status="started"))
        found: dict[str, Found] = {}
        with ThreadPoolExecutor(MAX_FORKS) as threads:
            working = {host: threads.submit(work, host) for host in hosts}
            for host, worker in working.items():
                try:
                    done, found[host] = worker.result()
                except KeyboardInterrupt:
                    self._stop.set()
                    done, found[host] = worker.result()
                for name, message, changed in done:
                    self._heard(Event(host, name, changed=changed, message=message))
        return found
