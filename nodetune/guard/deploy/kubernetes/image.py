"""The guard's part of the image of the pods: its program, the policy of the profile training, and `nodetune-check`.

Run by image/build: `python -m nodetune.guard.deploy.kubernetes.image FILE` writes it as a tar.
"""

import sys

from nodetune.guard.deploy import archive
from nodetune.guard.deploy.kubernetes import manifests, pods
from nodetune.guard.deploy.paths import PROGRAM
from nodetune.guard.deploy.request import ManifestsRequest

POLICY = f"{PROGRAM}/guard.json"
CHECK = "/usr/local/bin/nodetune-check"
SCRIPT = """#!/bin/sh
# Written by nodetune. Before a job, as an init container: it ends the pod only if a GPU of the pod is bad.
{start} pod --policy {policy} --result /dev/termination-log
[ $? != 1 ]
"""


def write(path: str) -> None:
    """Write the tar. Raise OSError."""
    policy = pods.policy_text(manifests.guard_policy(ManifestsRequest()))
    script = SCRIPT.format(start=" ".join(pods.START), policy=POLICY)
    archive.write_tar(path, {POLICY: (0o644, policy), CHECK: (0o755, script)})


if __name__ == "__main__":
    write(sys.argv[1])
