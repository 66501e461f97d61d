"""Measure on hosts and yield their events as they arrive. Each host of a group gets the events of the others."""

import secrets
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.remote import group_messages, payload
from nodetune.remote.live_pool import Ended, LivePool
from nodetune.verify import catalogue, figures

ENDING_SECONDS = 12.0
"""Seconds after each measurement's deadline for a killed process to disappear."""

Plan = Mapping[str, Any]


def measure(
    targets: Sequence[Target], plan_for: Callable[[Target], Plan], connection: ConnectionOptions
) -> Generator[tuple[Target, dict[str, Any] | Ended], None, None]:
    """Run a plan (see nodetune/measurements/main.py) on each host, and yield (target, event) on arrival.

    Events are those of the payload (`begin`, `step`, `note`, `record`, `done`, `end`), safe to print, and Ended once
    for each host. Hosts whose plans name the same `group` run together; `self` is filled in here, and so are deadlines
    and the `run`, which keeps other runs off these hosts meanwhile. Closing the generator ends everything on all
    hosts. Raise ValueError for a plan that names no measurement, or a group with a host that is not among the targets.
    """
    run = new_run()
    plans = {target.name: complete(plan_for(target), target.name, run) for target in targets}
    groups = grouped(targets, plans)
    hall = LivePool(
        groups,
        lambda target: payload.measuring(plans[target.name]),
        replace(connection.options, seconds=longest(plans.values(), connection.options)),
        connection.forks,
        connection.transport,
    )
    events = hall.events()
    try:
        for target, event in events:
            others = [name for name in plans[target.name]["group"]["hosts"] if name != target.name]
            for told in group_messages.relayed(event, plans[target.name]["group"]["self"]):
                for other in others:
                    hall.say(other, told)
            for each in [event] if isinstance(event, Ended) else safe(event, plans[target.name]):
                yield target, each
    finally:
        events.close()


def new_run() -> str:
    """Return a name for a run; its hosts reserve the machine for measuring under this name.

    A run without a name does not check whether another run measures.
    """
    return secrets.token_hex(4)


def complete(plan: Plan, host: str, run: str) -> dict[str, Any]:
    """Complete a plan with everything that the host needs. Raise ValueError."""
    group = plan.get("group") or {"hosts": [host]}
    if host not in group["hosts"]:
        raise ValueError(f"{host} is not in its own group: {', '.join(group['hosts'])}")
    measurements = [
        {"options": {}, "shares_cuda": catalogue.of(each["name"]).shares_cuda, **each, "seconds": seconds_of(each)}
        for each in plan["measurements"]
    ]
    own = {**group, "self": list(group["hosts"]).index(host)}
    return {"run": run, **plan, "group": own, "measurements": measurements}


def seconds_of(measurement: Mapping[str, Any]) -> float:
    """Return the deadline of a measurement: its own, or the one in its file. Raise ValueError."""
    name, given = measurement["name"], measurement.get("seconds")
    if name not in names():
        raise ValueError(f"unknown measurement {name}: there are {', '.join(names())}")
    return float(given or catalogue.of(name).seconds)


def names() -> list[str]:
    """Return all measurements: the files of nodetune/measurements with a function `measure(options, report)`."""
    return sorted(catalogue.measurements())


def grouped(targets: Sequence[Target], plans: Mapping[str, Plan]) -> list[list[Target]]:
    """Return hosts that must run together, in the given order. Raise ValueError."""
    by_name = {target.name: target for target in targets}
    groups: dict[tuple[str, ...], list[Target]] = {}
    for target in targets:
        members = tuple(plans[target.name]["group"]["hosts"])
        missing = [name for name in members if name not in by_name]
        if missing:
            raise ValueError(f"{target.name} should measure with {', '.join(missing)}, which is not in this run")
        groups[members] = [by_name[name] for name in members]
    return list(groups.values())


def longest(plans: Iterable[Plan], session_options: SessionOptions) -> float:
    """Return the deadline for a whole host: an upper limit; each measurement has its own deadline."""
    spans = [sum(float(each["seconds"]) + ENDING_SECONDS for each in plan["measurements"]) for plan in plans]
    return session_options.seconds + max(spans, default=0.0)


def safe(event: Mapping[str, Any], plan: Plan) -> list[dict[str, Any]]:
    """Return an event of known shape, or nothing (for messages among hosts)."""
    kind = next((kind for kind in ("begin", "step", "note", "record", "done", "end") if kind in event), None)
    content = event.get(kind) if kind else None
    if not isinstance(content, dict):
        return []
    if kind == "record":
        return [{"record": figures.record(content, [each["name"] for each in plan["measurements"]])}]
    return [{kind: figures.safe(content)}] if kind else []
