"""What a host is for, where nobody said so: what runs on it tells, or it is a guess. Pure."""

from __future__ import annotations

import re

from nodetune.api.facts_view import FactsView
from nodetune.api.model import HostFacts

TRAINING, INFERENCE = "training", "inference"
NEEDS = ("slurm.present", "services.running")
SERVES = re.compile(
    r"(vllm|triton(server)?|sglang|ollama|tgi|text-generation|lmdeploy|llama-server)[-@.]", re.IGNORECASE
)
"""How the unit of a serving stack begins. Processes are no evidence: they come and go, and the verdicts would with them."""

GUESS = f"judged as {TRAINING}: -p {INFERENCE} for serving"


def of(facts: HostFacts) -> tuple[str, str]:
    """Return the profile for what a host is for, and the reason in words.

    Kubernetes says nothing: it runs both.
    """
    view = FactsView(facts, NEEDS)
    if view.readable("slurm.present"):
        return TRAINING, f"{TRAINING}: Slurm runs jobs here"
    serving = [unit for unit in view.readable("services.running", ()) if SERVES.match(unit)]
    return (INFERENCE, f"{INFERENCE}: {serving[0]} runs here") if serving else (TRAINING, GUESS)
