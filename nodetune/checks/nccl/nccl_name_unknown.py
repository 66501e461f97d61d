"""A name is set that neither NCCL nor a plugin of it reads.

Why it matters: An unknown name is no error: it does nothing, and what was meant stays at its default. Names get
misspelt, and some that guides hand on never existed (NCCL_COLLECTIVE_ENABLE, where NCCL_COLLNET_ENABLE was meant).
Confirm by hand: strings -a "$(ldconfig -p | awk '/libnccl.so.2/ {print $NF; exit}')" | grep -x NCCL_NAME
Side effects of the fix: A corrected name begins to act, for every program that loads NCCL from then on.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ; https://github.com/NVIDIA/nccl (names in
src/ of all release tags) ; https://github.com/Mellanox/nccl-rdma-sharp-plugins
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import names
from nodetune.remedies import manual
from nodetune.view import View


def unknown_names(facts: View) -> Any:
    return names.unknown(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=unknown_names,
    accept=Empty("names that NCCL or one of its plugins reads"),
    remedy=manual("In the file and line named, correct the name as proposed, or delete the line if nobody misses it."),
    severity="medium",
)
