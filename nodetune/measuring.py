"""Has hosts measure, and hands over what they say as they say it. What one host of a group tells, the others hear."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nodetune import bundle, show
from nodetune.transport import Options, Target
from nodetune.transport.conversation import Conversation, Ended
from nodetune.workflow import Reach

ENDING_SECONDS = 12.0
"""On top of each measurement's deadline: what a killed process may take to be gone."""

MOST_SAMPLES = 20_000
DEEPEST = 8
LONGEST = 2000

Plan = Mapping[str, Any]


def measure(
    targets: Sequence[Target], plan_for: Callable[[Target], Plan], reach: Reach
) -> Generator[tuple[Target, dict[str, Any] | Ended], None, None]:
    """Carry out a plan (see nodetune/verify/main.py) on each host, and yield (target, event) as they come.

    Events are what the payload says (`begin`, `step`, `note`, `record`, `done`, `end`), safe to print, and Ended once
    for each host. Hosts whose plans name the same `group` run together; `self` is filled in here, and so are deadlines
    and the `run`, which keeps any other run away from these hosts meanwhile. Closing the generator ends everything on all
    hosts. Raises ValueError for a plan that names no measurement, or a group with a host that is not among the targets.
    """
    run = new_run()
    plans = {target.name: complete(plan_for(target), target.name, run) for target in targets}
    groups = grouped(targets, plans)
    hall = Conversation(
        groups,
        lambda target: bundle.measuring(plans[target.name]),
        replace(reach.options, seconds=longest(plans.values(), reach.options)),
        reach.forks,
        reach.transport,
    )
    events = hall.events()
    try:
        for target, event in events:
            others = [name for name in plans[target.name]["group"]["hosts"] if name != target.name]
            for told in relayed(event, plans[target.name]):
                for other in others:
                    hall.say(other, told)
            for each in [event] if isinstance(event, Ended) else safe(event, plans[target.name]):
                yield target, each
    finally:
        events.close()


def new_run() -> str:
    """A name for a run, for which its hosts keep their one place for measuring. Without one they do not look who else measures."""
    return secrets.token_hex(4)


def complete(plan: Plan, host: str, run: str) -> dict[str, Any]:
    """A plan with everything in it that the host must know. Raises ValueError."""
    group = plan.get("group") or {"hosts": [host]}
    if host not in group["hosts"]:
        raise ValueError(f"{host} is not in its own group: {', '.join(group['hosts'])}")
    measurements = [{"options": {}, **each, "seconds": seconds_of(each)} for each in plan["measurements"]]
    own = {**group, "self": list(group["hosts"]).index(host)}
    return {"run": run, **plan, "group": own, "measurements": measurements}


def seconds_of(measurement: Mapping[str, Any]) -> float:
    """The deadline of a measurement of a plan: its own, or what its file says. Raises ValueError."""
    name, given = measurement["name"], measurement.get("seconds")
    if name not in names():
        raise ValueError(f"no measurement is called {name}: there are {', '.join(names())}")
    text = (bundle.VERIFY / f"{name}.py").read_text("utf-8")
    found = re.search(r"^SECONDS = ([\d.]+)", text, re.MULTILINE)
    return float(given or (found[1] if found else 20.0))


def names() -> list[str]:
    """All measurements: the files of nodetune/verify that have a function `measure(options, report)`."""
    files = sorted(bundle.VERIFY.glob("[a-z]*.py"))
    return [each.stem for each in files if re.search(r"^def measure\(", each.read_text("utf-8"), re.MULTILINE)]


def grouped(targets: Sequence[Target], plans: Mapping[str, Plan]) -> list[list[Target]]:
    """Hosts that must run together, in the order in which they were given. Raises ValueError."""
    by_name = {target.name: target for target in targets}
    groups: dict[tuple[str, ...], list[Target]] = {}
    for target in targets:
        members = tuple(plans[target.name]["group"]["hosts"])
        missing = [name for name in members if name not in by_name]
        if missing:
            raise ValueError(f"{target.name} is to measure with {', '.join(missing)}, which is not in this run")
        groups[members] = [by_name[name] for name in members]
    return list(groups.values())


def longest(plans: Iterable[Plan], options: Options) -> float:
    """Seconds after which a host is cut off: a ceiling, not a wish. Each measurement has a deadline of its own."""
    spans = [sum(float(each["seconds"]) + ENDING_SECONDS for each in plan["measurements"]) for plan in plans]
    return options.seconds + max(spans, default=0.0)


def relayed(event: Mapping[str, Any] | Ended, plan: Plan) -> list[dict[str, Any]]:
    """What the other hosts of its group are to hear of a host's event."""
    if isinstance(event, Ended):
        return [{"gone": plan["group"]["self"]}]
    told = event.get("tell")
    if not isinstance(told, dict) or not isinstance(told.get("number"), int) or not isinstance(told.get("topic"), str):
        return []
    message = {"number": told["number"], "topic": told["topic"], "data": told.get("data")}
    return [{"told": {**message, "from": plan["group"]["self"]}}]


def safe(event: Mapping[str, Any], plan: Plan) -> list[dict[str, Any]]:
    """An event as readers may rely on it: nothing (what is for the hosts among themselves), or one of known shape."""
    kind = next((kind for kind in ("begin", "step", "note", "record", "done", "end") if kind in event), None)
    content = event.get(kind) if kind else None
    if not isinstance(content, dict):
        return []
    if kind == "record":
        return [{"record": _record(content, plan)}]
    return [{kind: _plain(content)}] if kind else []


def _record(record: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """A record as it should be, or one that says that it was not."""
    name = str(record.get("measurement"))
    known = {each["name"] for each in plan["measurements"]}
    if name not in known:
        return {"measurement": min(known), "failed": "the host sent a figure that nobody asked for"}
    if "skip" in record or "failed" in record:
        kept = {
            key: show.plain(record[key], LONGEST) for key in ("skip", "failed", "subject", "metric") if key in record
        }
        return {"measurement": name, **kept}
    samples = record.get("samples")
    if not _are_numbers(samples) or record.get("better") not in ("higher", "lower"):
        return {"measurement": name, "failed": "the host sent a figure that is none"}
    texts = {key: show.plain(record.get(key, "")) for key in ("metric", "subject", "unit", "better")}
    return {"measurement": name, **texts, "samples": samples, "about": _plain(record.get("about") or {})}


def _are_numbers(samples: Any) -> bool:
    if not isinstance(samples, list) or not 0 < len(samples) <= MOST_SAMPLES:
        return False
    return all(type(each) in (int, float) and math.isfinite(each) for each in samples)


def _plain(data: Any, depth: int = 0) -> Any:
    """JSON data without anything in it that harms a terminal; what is nested deeper than anybody's is cut off."""
    if depth > DEEPEST:
        return None
    if isinstance(data, dict):
        return {show.plain(key): _plain(each, depth + 1) for key, each in data.items()}
    if isinstance(data, list):
        return [_plain(each, depth + 1) for each in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return show.plain(data, LONGEST) if isinstance(data, str) else data
