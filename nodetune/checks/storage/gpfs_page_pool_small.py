"""The page pool of GPFS (IBM Storage Scale) has its default size.

Why it matters: GPFS does not use the page cache of Linux. It caches, reads ahead and collects writes in its page pool,
1 GiB by default, which a GPU host with hundreds of GiB of memory fills within a second. A page pool that grows by itself
(dynamic page pool) is not judged.
Confirm manually: /usr/lpp/mmfs/bin/mmdiag --config | grep -i pagepool
Side effects of the fix: The page pool is pinned memory that jobs cannot use.
Sources: https://www.ibm.com/docs/en/linux-on-systems?topic=parameters-spectrum-scale-cache-usage ;
https://www.ibm.com/docs/en/storage-scale/5.2.3?topic=overview-dynamic-pagepool ;
https://www.ibm.com/support/knowledgecenter/en/linuxonibm/liaag/wecm/l0wecm00_pagepool_size.html
"""

from nodetune.api import AtLeast, Check, FactAbsentError, FactsView, When, manual

LARGE_KB = 256 << 20
MORE_THAN_DEFAULT = (1 << 30) + 1


def observe(facts: FactsView) -> int:
    if not any(point["type"] == "gpfs" for point in facts["mounts.points"].values()):
        raise FactAbsentError("no GPFS file system is mounted")
    config = facts["gpfs.config"]
    if config.get("dynamicPagepoolEnabled"):
        raise FactAbsentError("the page pool grows by itself")
    if "pagepool" not in config:
        raise FactAbsentError("mmdiag does not report the page pool")
    return int(config["pagepool"])


CHECK = Check(
    needs=("mounts.points", "gpfs.config"),
    observe=observe,
    accept=AtLeast(MORE_THAN_DEFAULT),
    applies=(When("memory.total_kb", AtLeast(LARGE_KB), "less than 256 GiB of memory"),),
    unit="bytes",
    remedy=manual(
        "On a node of the cluster's administrators: mmchconfig pagepool=16G -i -N NODES (a few percent of the memory), then "
        "mmdiag --config on this host."
    ),
    severity="info",
    name="GPFS page pool",
)
