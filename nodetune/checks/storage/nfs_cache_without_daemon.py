"""cachefilesd is not running for NFS mounts with fsc.

Why it matters: The option fsc only marks files for FS-Cache. Without cachefilesd, there is no cache behind it. Every
epoch reads over the network again.
Confirm manually: findmnt -t nfs,nfs4 -O fsc; systemctl status cachefilesd; cat /proc/fs/fscache/stats
Side effects of the fix: The cache fills /var/cache/fscache up to the limits in /etc/cachefilesd.conf.
Sources: https://docs.kernel.org/filesystems/caching/cachefiles.html ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/managing_file_systems/getting-started-with-an-fs-cache_managing-file-systems
"""

from __future__ import annotations

from nodetune.api import Absent, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> str | Absent:
    if not any(mount["fs_cache"] for mount in facts["mounts.nfs"].values()):
        return Absent("no NFS mount with the option fsc")
    return str(facts.get("services.cachefilesd", {"active": "not installed"})["active"])


CHECK = Check(
    needs=("mounts.nfs", "services.cachefilesd"),
    observe=observe,
    accept=Equals("active"),
    remedy=manual(
        "Install cachefilesd, point dir in /etc/cachefilesd.conf to a local NVMe file system, systemctl enable --now "
        "cachefilesd and mount again. Alternatively, remove fsc from the mount options."
    ),
    severity="low",
    name="cachefilesd",
)
