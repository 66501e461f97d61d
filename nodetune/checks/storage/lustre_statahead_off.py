"""Lustre's client does not read attributes ahead.

Why it matters: When a program lists a directory and looks at each file, the client asks for the attributes of the next files
before the program does: 32 at a time by default. With statahead_max=0, a data set of many files is listed with one round
trip after the other.
Confirm manually: lctl get_param llite.*.statahead_max
Side effects of the fix: The server answers requests that a program may not need.
Sources: https://doc.lustre.org/lustre_manual.xhtml (Tuning Metadata Statahead) ;
https://git.whamcloud.com/?p=fs/lustre-release.git;a=blob;f=lustre/llite/lproc_llite.c (statahead_max)
"""

from nodetune.api import AtLeast, Check, lustre_param
from nodetune.checks.storage._lustre import least

DEFAULT = 32

CHECK = Check(
    needs=("mounts.points", "lustre.llite"),
    observe=least("llite", "statahead_max"),
    accept=AtLeast(1),
    set=DEFAULT,
    remedy=lustre_param("llite.statahead_max"),
    severity="low",
)
