"""An unknown NCCL variable is set.

Why it matters: Neither NCCL nor a plugin of it reads the name. An unknown name is not an error: it has no effect, and
the intended setting keeps its default. Names are misspelt, and some that appear in guides never existed
(NCCL_COLLECTIVE_ENABLE instead of NCCL_COLLNET_ENABLE).
Confirm manually: strings -a "$(ldconfig -p | awk '/libnccl.so.2/ {print $NF; exit}')" | grep -x NCCL_NAME
Side effects of the fix: None on this host: nothing reads the line. A container that mounts the file may contain a newer
NCCL than nodetune knows: waive the check there. Where no NCCL of the host settles it, only a name close to a known one is
judged. If the proposed name was meant, write it yourself, and measure: it takes effect for every program that loads NCCL.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ; https://github.com/NVIDIA/nccl (names in
src/ of all release tags) ; https://pypi.org/project/nvidia-nccl-cu12/ (names in the libraries since) ;
https://github.com/Mellanox/nccl-rdma-sharp-plugins
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, Unread, nccl_conf
from nodetune.checks.nccl._names import unknown
from nodetune.checks.shared.nccl_table import newest, release, table


def unknown_names(facts: FactsView) -> Any:
    settings, libraries = facts["nccl.settings"], facts.readable("nccl.libraries", [])
    known, versions = str(table()["about"]["newest"]), [each["version"] for each in libraries]
    settled = bool(versions) and all(each and release(each) <= release(known) for each in versions)
    here = newest(libraries)
    jobs = (
        f"NCCL {here} of this host is"
        if here
        else "no release of an NCCL of this host is known, and that of a job may be"
    )
    tomorrow = Unread(f"{jobs} newer than {known}, the newest whose names are known here")
    return {**({} if settled else dict.fromkeys(unknown(settings), tomorrow)), **unknown(settings, settled)} or []


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries"),
    observe=unknown_names,
    accept=Empty("names that NCCL or one of its plugins reads"),
    set="removed",
    remedy=nccl_conf(),
    severity="medium",
    name="nccl.conf",
)
