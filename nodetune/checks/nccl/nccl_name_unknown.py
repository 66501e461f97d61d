"""An unknown NCCL variable is set.

Why it matters: Neither NCCL nor a plugin of it reads the name. An unknown name is not an error: it has no effect, and
the intended setting keeps its default. Names are misspelt, and some that appear in guides never existed
(NCCL_COLLECTIVE_ENABLE instead of NCCL_COLLNET_ENABLE).
Confirm manually: strings -a "$(ldconfig -p | awk '/libnccl.so.2/ {print $NF; exit}')" | grep -x NCCL_NAME
Side effects of the fix: None on this host: nothing reads the line. A container that mounts the file may contain a newer
NCCL than nodetune supports: waive the check there. If the proposed name was meant, write it yourself, and measure:
it takes effect for every program that loads NCCL from then on.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ; https://github.com/NVIDIA/nccl (names in
src/ of all release tags) ; https://github.com/Mellanox/nccl-rdma-sharp-plugins
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, Unread, nccl_conf
from nodetune.checks.nccl._names import unknown
from nodetune.checks.shared.nccl_table import newest, release, table


def unknown_names(facts: FactsView) -> Any:
    found = unknown(facts["nccl.settings"])
    here, known = newest(facts.readable("nccl.libraries", [])), str(table()["about"]["newest"])
    if found and release(here) > release(known):
        return Unread(f"NCCL {here} of this host is newer than {known}, the newest whose names are known here")
    return found or []


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries"),
    observe=unknown_names,
    accept=Empty("names that NCCL or one of its plugins reads"),
    set="removed",
    remedy=nccl_conf(),
    severity="medium",
    name="nccl.conf",
)
