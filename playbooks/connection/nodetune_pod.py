"""Ansible's connection through a privileged pod on a Kubernetes node: modules run on the host. On the controller."""

import dataclasses
import os
import shlex
import sys

from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bounded

from nodetune.foundation import UserError
from nodetune.hosts.target import UnreachableError
from nodetune.remote.kubernetes import fix_pod

DOCUMENTATION = """
name: nodetune_pod
short_description: Run modules on the host of a Kubernetes node
description: Through a privileged pod, which is made if it is not there.
options:
  node: {description: Name of the node., type: str, vars: [{name: nodetune_pod_node}], required: true}
  name: {description: Name of the pod., type: str, vars: [{name: nodetune_pod_name}], required: true}
  image: {description: Image of the pod., type: str, vars: [{name: nodetune_pod_image}], required: true}
  namespace: {description: Namespace of the pod., type: str, vars: [{name: nodetune_pod_namespace}], required: true}
  context: {description: Context of the kubeconfig., type: str, vars: [{name: nodetune_pod_context}]}
  seconds: {description: Seconds after which the pod ends itself., type: float, vars: [{name: nodetune_pod_seconds}], required: true}
  session_seconds: {description: Seconds of a session with the pod., type: float, vars: [{name: nodetune_pod_session_seconds}], required: true}
"""
LIMITS = (bounded.MAX_BYTES, bounded.MAX_ERRORS, bounded.MAX_VALUES)


class Connection(ConnectionBase):
    """Each command is a session of its own; what is kept of a connection is that its pod was there."""

    transport = "nodetune_pod"
    has_pipelining = True
    has_tty = False

    def _connect(self):
        if not self._connected:
            names = (each.name for each in dataclasses.fields(fix_pod.HostPod))
            wanted = fix_pod.HostPod(**{name: self.get_option(name) for name in names})
            self._shell_there = self._told(fix_pod.shell, wanted, LIMITS)
            self._connected = True
        return self

    def exec_command(self, cmd, in_data=None, sudoable=True):
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return self._told(self._shell_there.run, cmd, in_data or b"")

    def put_file(self, in_path, out_path):
        super().put_file(in_path, out_path)
        try:
            with open(in_path, "rb") as stream:
                content = stream.read()
        except OSError as problem:
            raise AnsibleFileNotFound(str(problem)) from None
        self._whole(f"cat > {shlex.quote(out_path)}", content)

    def fetch_file(self, in_path, out_path):
        super().fetch_file(in_path, out_path)
        content = self._whole(f"cat {shlex.quote(in_path)}", b"")
        with open(out_path, "wb") as stream:
            stream.write(content)

    def _whole(self, command, content):
        code, out, errors = self._told(self._shell_there.run, command, content)
        if code:
            raise AnsibleConnectionFailure(
                errors.decode("utf-8", "replace").strip() or f"{command}: exit status {code}"
            )
        return out

    def _told(self, work, *given):
        try:
            return work(*given)
        except UnreachableError as problem:
            raise AnsibleConnectionFailure(problem.message) from None
        except UserError as problem:
            raise AnsibleConnectionFailure(str(problem)) from None

    def reset(self):
        """Look for the pod again: a reboot may have ended it."""
        self.close()

    def close(self):
        self._connected = False
