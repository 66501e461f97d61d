"""Watches recorded on two H100s and on two H200s: name of the loads → facts of a host."""

import copy
import json
from functools import cache
from pathlib import Path

from nodetune.api.model import HostResult
from nodetune.facts import document
from nodetune.jobs.watch import hosts

FOLDER = Path(__file__).parents[1] / "data" / "recordings" / "watch"
MACHINES = ("h100-x2", "h200-x2")


@cache
def recordings(machine):
    return json.loads((FOLDER / f"{machine}.json").read_text())


def facts(machine, loads):
    """A copy of the recorded facts, to change."""
    return copy.deepcopy(recordings(machine)[loads])


def gpu_of(found, name="GPU0"):
    return found["watch.gpus"]["each"][name]["value"]


def fact_file(found, host="gpu001"):
    """The document that a host with these facts sends."""
    return {"schema": "nodetune.facts/1", "host": host, "about": {}, "failed": {}, "stuck": [], "facts": found}


def judged(found, host="gpu001"):
    """The judged host."""
    return hosts.diagnose_host(HostResult(host, "ok", facts=document.from_data(fact_file(found, host), host)))


def verdicts(found):
    return {each.gpu.name: (each.diagnosis.verdict, each.diagnosis.rule) for each in judged(found).gpus}
