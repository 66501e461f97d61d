"""The hosts of a run that changes them: run plays, drain and resume, reboot; everything is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.ansible.play import SECONDS, OnEvent, PlayOptions
from nodetune.remediation.request import ChangeRequest
from nodetune.remediation.runs.record import Run

if TYPE_CHECKING:
    from nodetune.remediation.kubernetes import Cordons

KUBERNETES = "kubernetes"
DRAIN_POLL_SECONDS = 15.0
REBOOT_MORE_SECONDS = 900.0
"""Seconds for the reboot request and the check afterwards, in addition to the wait itself."""


class HostOperations:
    """The hosts of one run: run plays by Ansible, drain and resume, reboot.

    `on_event` is called with each of Ansible's events; `run` keeps the record.
    """

    def __init__(self, targets: Iterable[Target], request: ChangeRequest, run: Run, on_event: OnEvent) -> None:
        self.targets = {target.name: target for target in targets}
        self._request, self._run, self._on_event = request, run, on_event
        self.stopped = ""
        """Why everything must end, once it must (Ctrl-C)."""

        self.left_drained: dict[str, str] = {}
        """Hosts that this run drained and could not resume, with the reason."""

        self._unsure: set[str] = set()
        """Hosts that were lost during the drain: whether they are drained is unknown."""

    @cached_property
    def _cordons(self) -> Cordons:
        from nodetune.remediation.kubernetes import Cordons  # few runs need it

        return Cordons(self._request.connection, self._run.id, play.recorded(self._run, self._on_event))

    def play(
        self,
        name: str | Path,
        hosts: Sequence[str],
        variables: Mapping[str, Mapping[str, Any]] | None = None,
        seconds: float = SECONDS,
    ) -> dict[str, Outcome]:
        """Run a playbook on some of the hosts: see ansible/play.py. A play that is ended ends the whole run."""
        targets, connection = [self.targets[host] for host in hosts], self._request.connection
        play_options = PlayOptions(connection.options, connection.forks, seconds)
        outcomes = play.play(name, targets, variables or {}, play_options, self._run, self._on_event)
        stopped = next((outcome.message for outcome in outcomes.values() if outcome.state == "interrupted"), "")
        self.stopped = self.stopped or stopped
        return outcomes

    def drained(self, hosts: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """Drain hosts and wait. Return the hosts to resume, and host → why it did not become free."""
        if self._request.drain == KUBERNETES:
            ours, busy = self._cordons.drained(hosts, self._request.drain_seconds)
            self.stopped = self.stopped or ("stopped by Ctrl-C" if self._cordons.stopped else "")
            return ours, busy
        tries = {
            "nodetune_drain_tries": max(1, round(self._request.drain_seconds / DRAIN_POLL_SECONDS)),
            "nodetune_drain_delay": DRAIN_POLL_SECONDS,
        }
        outcomes = self.play("drain", hosts, dict.fromkeys(hosts, tries), self._request.drain_seconds + 600)
        ours = [host for host, outcome in outcomes.items() if any(event.changed for event in outcome.results)]
        lost = [host for host, outcome in outcomes.items() if outcome.state != "ok" and host not in ours]
        self._unsure |= set(lost)
        busy = {host: _still_busy(outcome) for host, outcome in outcomes.items() if outcome.state != "ok"}
        return [*ours, *lost], busy

    def give_back(self, hosts: Sequence[str]) -> None:
        """Resume what we drained; after an interruption the state of a host is unknown, and it stays drained."""
        if self.stopped:
            self.left_drained |= {host: self._perhaps(host, self.stopped) for host in hosts}
            return
        if self._request.drain == KUBERNETES:
            self.left_drained |= self._cordons.given_back(hosts)
            return
        for host, outcome in self.play("resume", hosts).items():
            given_back = any(event.changed for event in outcome.results)
            if not given_back and not (host in self._unsure and outcome.state == "ok"):
                why = outcome.message or "slurmd does not run there, or someone else has drained it since"
                self.left_drained[host] = self._perhaps(host, why)

    def _perhaps(self, host: str, why: str) -> str:
        return f"perhaps: the host was lost during the drain: {why}" if host in self._unsure else why

    def guard(self, host: str) -> dict[str, Any]:
        """Return the guard for changes that disturb work."""
        return out_of_use(self._request.connection, host, self._request.assume_drained)

    def rebooted(self, hosts: Sequence[str], guard: Mapping[str, bool] | None = None) -> dict[str, str]:
        """Reboot hosts that are still free (`guard`: under another condition).

        Return host → why it was not rebooted, or did not come back.
        """
        wait = self._request.reboot_seconds
        given = {
            host: {
                "nodetune_reboot_seconds": round(wait),
                "nodetune_guard": self.guard(host) if guard is None else dict(guard),
            }
            for host in hosts
        }
        outcomes = self.play("reboot", hosts, given, wait + REBOOT_MORE_SECONDS)
        if self._request.connection.transport == KUBERNETES:
            from nodetune.remote.kubernetes import nodes

            self.targets |= nodes.settled(self._request.connection, hosts)
        return {host: f"reboot: {outcome.message}" for host, outcome in outcomes.items() if outcome.state != "ok"}


def _still_busy(outcome: Outcome) -> str:
    """Return why a drain did not complete: the running jobs, or the error."""
    said = [str(event.result["busy"]) for event in outcome.results if event.result.get("busy")]
    return said[-1] if said else f"drain: {outcome.message}"


def out_of_use(connection: ConnectionOptions, host: str, assume_drained: bool) -> dict[str, Any]:
    """Return what must be true on a host before work is disturbed. Of Kubernetes nodes, the cluster is asked here."""
    guard: dict[str, Any] = {"gpu_idle": True, "drained": not assume_drained}
    if assume_drained or connection.transport != KUBERNETES:
        return guard
    from nodetune.remediation.kubernetes import in_service

    return {**guard, "kubernetes": in_service(connection, host)}
