"""Many processes have ended and were never collected (zombies).

Why it matters: Each keeps its number, and a place within its user's and cgroup's limit of processes, until its parent collects
it or ends. Their parent is a program that hangs, or the first process of a container, which is not an init. A few are usual.
Confirm manually: ps -eo ppid,stat,comm | awk '$2 ~ /^Z/' | sort | uniq -c | sort -rn | head
Side effects of the fix: Ending the parent loses its work.
Sources: https://github.com/leptonai/gpud/blob/main/components/os/component.go (degraded: above 1000) ;
https://man7.org/linux/man-pages/man2/wait.2.html (NOTES)
"""

from nodetune.api import NOT_CONTAINER, AtMost, Check, manual

CHECK = Check(
    fact="leftovers.zombies",
    accept=AtMost(1000),
    applies=(NOT_CONTAINER,),
    remedy=manual(
        "Find the parent with the command above: its owner ends it, and init then collects them. Start containers with an init "
        "(docker run --init; in pods shareProcessNamespace or tini)."
    ),
    severity="low",
)
