"""Ansible's connection by OpenSSH with a limit for a host's output: bounded.py runs ssh. On the controller."""

import os
import sys

from ansible.plugins.connection import ssh

DOCUMENTATION = ssh.DOCUMENTATION.replace("name: ssh\n", "name: nodetune_ssh\n", 1)
BOUNDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bounded.py")


class Connection(ssh.Connection):
    """Reads the output of ssh, scp and sftp up to a limit: Ansible itself keeps all of it in memory."""

    def _bare_run(self, cmd, *args, **more):
        before = [sys.executable, "-I", "-S", BOUNDED]
        return super()._bare_run([os.fsencode(each) for each in before] + list(cmd), *args, **more)
