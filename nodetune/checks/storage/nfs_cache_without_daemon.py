"""NFS mounts ask for a local cache, but no cache daemon runs.

Why it matters: The option fsc only marks files for FS-Cache. Without cachefilesd there is no cache behind it: every epoch
reads over the network again.
Confirm by hand: findmnt -t nfs,nfs4 -O fsc; systemctl status cachefilesd; cat /proc/fs/fscache/stats
Side effects of the fix: The cache fills /var/cache/fscache up to the limits in /etc/cachefilesd.conf.
Sources: https://docs.kernel.org/filesystems/caching/cachefiles.html ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/managing_file_systems/getting-started-with-an-fs-cache_managing-file-systems
"""

from nodetune.expect import Equals
from nodetune.model import Absent, Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str | Absent:
    if not any(seen["fs_cache"] for seen in facts["mounts.nfs"].values()):
        return Absent("no NFS mount with the option fsc")
    return str(facts.get("services.cachefilesd", {"active": "not installed"})["active"])


CHECK = Check(
    needs=("mounts.nfs", "services.cachefilesd"),
    observe=observe,
    accept=Equals("active"),
    remedy=manual(
        "Install cachefilesd, point dir in /etc/cachefilesd.conf to a local NVMe file system, systemctl enable --now cachefilesd "
        "and mount again; or remove fsc from the mount's options."
    ),
    severity="low",
)
