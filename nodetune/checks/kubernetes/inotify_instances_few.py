"""fs.inotify.max_user_instances is too low for a Kubernetes node.

Why it matters: The limit counts what all containers of one user hold, and most run as root. The kubelet, shims of containerd
and programs that follow files or logs need one or more each. At the limit they fail with "too many open files", although few
files are open.
Confirm manually: sysctl fs.inotify.max_user_instances
Side effects of the fix: Each instance may hold a little kernel memory.
Sources: https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files ;
https://man7.org/linux/man-pages/man7/inotify.7.html
"""

from nodetune.api import KUBELET, AtLeast, Check, sysctl

CHECK = Check(
    fact="sysctl.fs.inotify.max_user_instances",
    accept=AtLeast(512),
    set=8192,
    unit="instances",
    applies=(KUBELET,),
    remedy=sysctl("fs.inotify.max_user_instances", boot_default=128),
    severity="low",
)
