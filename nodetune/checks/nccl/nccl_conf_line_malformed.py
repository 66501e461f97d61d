"""A line of an nccl.conf is malformed.

Why it matters: NCCL splits a line at the first = and trims nothing. Blanks, quotes, an export or a comment at the end
of the line become part of the name or of the value. The setting is silently lost, although the administrator expects it
in every job of the node.
Healthy exception: A value may begin with =, which means an exact name.
Confirm manually: cat -A /etc/nccl.conf
Side effects of the fix: The setting takes effect for every program that loads NCCL from then on. Make sure that it is
still wanted.
Sources: https://github.com/NVIDIA/nccl (src/misc/param.cc, setEnvFile) ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.nccl_settings import malformed
from nodetune.checks.shared.nccl_table import newest


def malformed_lines(facts: FactsView) -> Any:
    version = newest(facts.readable("nccl.libraries", []))
    return malformed(facts["nccl.settings"], version) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries"),
    observe=malformed_lines,
    accept=Empty("only lines of the form NAME=VALUE"),
    remedy=manual(
        "Write each named line as NAME=VALUE, without blanks around =, quotes, export, or a comment after the value "
        "(a comment is a line that starts with #). Then: cat -A /etc/nccl.conf"
    ),
    severity="high",
)
