"""How much hardware this node had: a file outside /run, which a reboot empties. Only root may write it.

An absent memory is made, and a greater number of parts is kept; both judge nothing yet. A damaged one stays until someone removes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import HostFacts
from nodetune.checks.gpu.hardware_missing import MEMORY
from nodetune.checks.shared import hardware_parts
from nodetune.guard.node import gating_checks, records
from nodetune.probe import guard as memory
from nodetune.probe import read as bounded

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments
    from nodetune.guard.node.policy import Policy
    from nodetune.guard.node.read import Reading

CHECK = "hardware-missing"
ELSEWHERE = {"absent": "the condition of the node in Kubernetes remembers it"}
NEEDS = (*hardware_parts.NEEDS, "host.virtual")


def seen(host: HostFacts, promised: int) -> dict[str, Any]:
    """Return the number of parts of this machine, and what is `promised` of them. Raise FactUnreadError or OSError."""
    facts = FactsView(host, NEEDS)
    parts = hardware_parts.present(facts)
    return {**parts, "machine": memory.machine(), "promised": promised, "virtual": facts["host.virtual"]}


def host_facts(asked: Arguments, chosen: Policy, reading: Reading) -> HostFacts:
    """Return what was read as facts for the checks; the memory as they are to judge by it."""
    host = gating_checks.host_facts(reading.facts, reading.failed)
    if MEMORY not in reading.facts:
        return host
    promised = max(asked.gpus, chosen.gpus)
    fact = remembered(asked.kept, reading.facts[MEMORY], host, promised) if asked.kept else ELSEWHERE
    return gating_checks.host_facts({**reading.facts, MEMORY: fact}, reading.failed)


def remembered(kept: str, fact: Mapping[str, Any], host: HostFacts, promised: int) -> dict[str, Any]:
    """Return the fact of the memory as the check is to judge by it, and keep what is new."""
    if "unread" in fact:
        return dict(fact)
    try:
        now = seen(host, promised)
        if "absent" in fact:
            missing, unsure = hardware_parts.judge({}, now, now["promised"], virtual=now["virtual"])
            if missing:
                return {"unread": f"{missing}: {unsure}"}
            _keep(kept, now)
            told = f"from now on it is {now['gpus']} GPUs and {now['adapters']} network adapters"
            return {"unread": f"{fact['absent']}: {told}"}
        most = hardware_parts.most(fact["value"], now)
        if not most.items() <= fact["value"].items():
            _keep(kept, {**now, **most})
        return {"value": {**fact["value"], "promised": promised}}
    except (FactUnreadError, FactAbsentError) as problem:
        return {"unread": str(problem)}
    except OSError as problem:
        return {"unread": f"{problem.filename or kept}: {(problem.strerror or str(problem)).lower()}"}


def asked_for(chosen: Policy) -> bool:
    """Return whether the policy has the check, and nobody waived it."""
    return any(each["id"] == CHECK for each in chosen.checks) and CHECK not in chosen.waived()


def for_reporter(asked: Arguments, chosen: Policy, host: HostFacts) -> dict[str, Any]:
    """Return what is seen, for a reporter that remembers; `unread` where that is unknown."""
    from nodetune import data  # its table takes time that a prolog does not have

    of_type = data.gpus_of_machine(bounded.text_or(f"{memory.DMI}/product_name"))
    try:
        return seen(host, max(asked.gpus, chosen.gpus, of_type))
    except (FactUnreadError, FactAbsentError, OSError) as problem:
        return {"unread": str(problem)}


def _keep(kept: str, now: Mapping[str, Any]) -> None:
    """Write the memory. Raise OSError."""
    os.makedirs(kept, mode=0o755, exist_ok=True)
    told = {name: now[name] for name in ("machine", *hardware_parts.NAMES)}
    records.write(os.path.join(kept, memory.FILE), json.dumps(told) + "\n", sync=True)
