"""A line of an nccl.conf does not mean what it looks like.

Why it matters: NCCL splits a line at the first = and trims nothing. Blanks, quotes, an export, a comment at the end of
the line all become part of the name or of the value, and the setting is lost without a word: the administrator
believes that it holds on every job of the node.
Confirm by hand: cat -A /etc/nccl.conf
Side effects of the fix: The setting begins to act, for every program that loads NCCL from then on. Be sure that it is
still wanted.
Sources: https://github.com/NVIDIA/nccl (src/misc/param.cc, setEnvFile) ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import releases, syntax
from nodetune.remedies import manual
from nodetune.view import View


def malformed_lines(facts: View) -> Any:
    version = releases.newest(facts.readable("nccl.libraries", []))
    return syntax.malformed(facts["nccl.settings"], version) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries"),
    observe=malformed_lines,
    accept=Empty("lines of the form NAME=VALUE and nothing else"),
    remedy=manual(
        "Write each named line as NAME=VALUE: no blanks around =, no quotes, no export, no comment after the value "
        "(a comment is a line that starts with #). Then: cat -A /etc/nccl.conf"
    ),
    severity="high",
)
