"""An NFS mount does not cache attributes or names.

Why it matters: With noac or actimeo=0, every stat and open asks the server again, and noac writes synchronously as well.
With lookupcache=none, every component of every path does. An epoch over small files, or a start of Python with thousands
of modules, then waits for one round trip after the other, on all nodes at once.
Confirm manually: nfsstat -m | grep -E 'noac|acregmax=0|lookup_?cache=none'
Side effects of the fix: Takes effect at the next boot, or after the mount is unmounted and mounted again. Changes by other
hosts are seen some seconds later (60 at most), unless a file is opened again. Programs that coordinate by files across hosts
should use locks instead.
Sources: https://man7.org/linux/man-pages/man5/nfs.5.html (ac, actimeo, lookupcache)
"""

from nodetune.api import Check, Empty, FactsView, nfs_option

CACHING_OFF = ("noac", "acregmax=0", "acdirmax=0", "lookupcache=none")


def observe(facts: FactsView) -> dict[str, str]:
    points = facts["mounts.points"]
    options = {place: (*points[place]["options"], *points[place]["super_options"]) for place in facts["mounts.nfs"]}
    return {place: ", ".join(one for one in CACHING_OFF if one in given) for place, given in options.items()}


CHECK = Check(
    needs=("mounts.nfs", "mounts.points"),
    observe=observe,
    accept=Empty("caches of attributes and names"),
    set="on",
    remedy=nfs_option("caches"),
    severity="low",
)
