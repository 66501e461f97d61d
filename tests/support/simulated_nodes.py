"""Nodes of a real API server without machines: each has the token that the guard's pod on it would have, and its rights."""

import base64
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from nodetune.guard.deploy.kubernetes import access, manifests
from nodetune.guard.deploy.request import ManifestsRequest
from nodetune.guard.node.condition import TYPE
from nodetune.guard.node.node_status import CA, TOKEN, Server
from nodetune.remote.kubernetes.api import ApiError

AT_A_TIME = 16
PODS = f"/api/v1/namespaces/{access.NAMESPACE}/pods"


class SimulatedNodes:
    """`count` nodes of an API server; the guard must not be installed there. `folder` gets their tokens."""

    def __init__(self, api, count, folder):
        self.api, self.folder = api, folder
        self.label = f"nodetune-test/{secrets.token_hex(4)}"
        self.names = [f"nodetune-test-{number:05d}" for number in range(count)]
        self._authority = base64.b64decode(api.access.cluster["certificate-authority-data"])

    @contextmanager
    def made(self):
        for each in rights():
            self.api.request("POST", path(each), each)
        try:
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                list(pool.map(self.make, self.names))
            yield self
        finally:
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                list(pool.map(self.remove, self.names))
            for each in reversed(rights()):
                self.api.request("DELETE", f"{path(each)}/{each['metadata']['name']}")

    def make(self, name):
        """Make a node, the pod of the guard on it, and the token of this pod."""
        self.add(name)
        container = {"name": "reporter", "image": "none"}
        spec = {
            "nodeName": name,
            "serviceAccountName": access.NAME,
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
        }
        pod = self.api.request("POST", PODS, {"metadata": {"name": name}, "spec": spec})
        bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
        self.token(name, {"boundObjectRef": bound})

    def add(self, name):
        self.api.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {self.label: ""}}})

    def token(self, name, spec):
        asked = {"spec": {"expirationSeconds": 3600, **spec}}
        account = f"/api/v1/namespaces/{access.NAMESPACE}/serviceaccounts/{access.NAME}/token"
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / TOKEN).write_text(self.api.request("POST", account, asked)["status"]["token"])
        (folder / CA).write_bytes(self._authority)

    def remove(self, name):
        self.delete(f"{PODS}/{name}")
        self.delete(f"/api/v1/nodes/{name}")

    def delete(self, path):
        try:
            self.api.request("DELETE", path, query={"gracePeriodSeconds": "0"})
        except ApiError as problem:
            if problem.status != 404:
                raise

    def server(self, name):
        """The API server as the pod of this node sees it."""
        host, _, port = self.api.name.rpartition(":")
        return Server(host, int(port), str(self.folder / name))

    def conditions(self):
        """Node → the status of its condition; None without one."""
        nodes = self.api.items("/api/v1/nodes", {"labelSelector": self.label})
        return {each["metadata"]["name"]: condition(each).get("status") for each in nodes}


def condition(node):
    return next((each for each in node["status"].get("conditions") or [] if each["type"] == TYPE), {})


def rights():
    """The namespace and the rights of the guard, as `nodetune guard manifests` prints them."""
    every = manifests.daemon_set(ManifestsRequest())
    return [each for each in every if each["kind"] not in ("ConfigMap", "DaemonSet")]


def path(made):
    """Where an object is made."""
    kind = made["kind"].lower()
    kinds = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    namespace = made["metadata"].get("namespace")
    group = "/api/v1" if made["apiVersion"] == "v1" else f"/apis/{made['apiVersion']}"
    return f"{group}{f'/namespaces/{namespace}' if namespace else ''}/{kinds}"
