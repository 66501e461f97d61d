"""Another tool sets kernel parameters.

Why it matters: What is set manually or by nodetune may not stay. saptune and sapconf apply their values at boot,
nodewright (skyhook) whenever its operator finds a difference, and bpftune while the host runs, as the load changes; it
keeps away from a parameter that an administrator sets. The check reports the owner and judges nothing.
Confirm manually: systemctl is-active bpftune saptune sapconf; ls /var/lib/skyhook
Side effects of the fix: The parameters follow the one remaining owner.
Sources: https://github.com/oracle/bpftune ; https://github.com/SUSE/saptune ;
https://github.com/NVIDIA/nodewright-packages/tree/main/nvidia-tuned ; https://github.com/NVIDIA/nodewright/pull/605
"""

from nodetune.api import NOT_CONTAINER, Check, Empty, FactsView, manual
from nodetune.checks.services._units import running

UNITS = ("bpftune", "saptune", "sapconf")


def observe(facts: FactsView) -> list[str]:
    packages = facts.get("services.nodewright", [])
    return [*running(facts, UNITS), *(f"nodewright: {name}" for name in packages)]


CHECK = Check(
    needs=(*(f"services.{name}" for name in UNITS), "services.nodewright"),
    observe=observe,
    accept=Empty("no other owner"),
    applies=(NOT_CONTAINER,),
    remedy=manual(
        "Decide who owns the parameters. Where it is the other tool, put the values that you want into its configuration and "
        "switch those checks off in the site file; otherwise stop it: systemctl disable --now NAME."
    ),
    severity="info",
    name="kernel parameters",
)
