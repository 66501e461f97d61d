"""Shared parts of commands that probe hosts: the hosts, and their results on arrival."""

from __future__ import annotations

from nodetune.api.model import HostResult
from nodetune.audit import run
from nodetune.audit.selection import Selection
from nodetune.cli import verbosity
from nodetune.cli.terminal import Terminal
from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.remote.selected_hosts import selected_hosts as hosts_of


def with_facts(targets: list[Target], choice: Selection, reach: ConnectionOptions) -> list[HostResult]:
    return run.with_facts(targets, choice, reach, Terminal())


def selected_hosts(reach: ConnectionOptions) -> list[Target]:
    return hosts_of(reach, verbosity.detail)
