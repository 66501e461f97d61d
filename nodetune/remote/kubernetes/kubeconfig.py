"""The kubeconfig: which API server, and who we are to it."""

import base64
import binascii
import json
import os
import ssl
import subprocess
import tempfile
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nodetune.foundation import UserError
from nodetune.foundation import text as plain_text

DEFAULT = "~/.kube/config"
PLUGIN_SECONDS = 60.0
"""A credential plugin may ask a cloud, or open a browser."""


class KubeconfigError(UserError):
    """The kubeconfig cannot be used. One line."""


@dataclass(frozen=True)
class Access:
    """An API server, and how to be known to it. `user` is the user's entry; its relative paths are below `folder`."""

    context: str
    server: str
    namespace: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    cluster_folder: Path
    user_folder: Path

    def tls(self) -> ssl.SSLContext:
        """Return the settings of every connection. Raise KubeconfigError."""
        authority = self.cluster.get("certificate-authority-data")
        try:
            found = ssl.create_default_context(
                cafile=_path(self.cluster, "certificate-authority", self.cluster_folder),
                cadata=_decoded(authority).decode("ascii") if authority else None,
            )
        except (OSError, ValueError) as problem:
            raise KubeconfigError(f"kubeconfig: the certificate authority cannot be read: {_said(problem)}") from None
        if self.cluster.get("insecure-skip-tls-verify"):
            found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
        self._add_certificate(found)
        return found

    def _add_certificate(self, tls: ssl.SSLContext) -> None:
        data, key = self.user.get("client-certificate-data"), self.user.get("client-key-data")
        path, key_path = (_path(self.user, name, self.user_folder) for name in ("client-certificate", "client-key"))
        if data and key:
            load_certificate(tls, _decoded(data), _decoded(key))
        elif path or key_path or data:
            try:
                tls.load_cert_chain(path or "", key_path)
            except OSError as problem:
                raise KubeconfigError(f"kubeconfig: the client certificate cannot be read: {_said(problem)}") from None

    def token(self) -> str | None:
        """Return the token of the user, if it has one of its own. Raise KubeconfigError."""
        path = _path(self.user, "tokenFile", self.user_folder)
        if not path:
            return self.user.get("token")
        try:
            return Path(path).read_text("ascii").strip()
        except (OSError, ValueError) as problem:
            raise KubeconfigError(f"kubeconfig: tokenFile {path}: {_said(problem)}") from None


def load_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Use a client certificate: the ssl module reads it only from a file. Raise KubeconfigError."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        try:
            tls.load_cert_chain(file.name)
        except OSError as problem:
            raise KubeconfigError(f"the client certificate cannot be used: {_said(problem)}") from None


def access(context: str | None = None) -> Access:
    """Return what KUBECONFIG, or else ~/.kube/config, says about a context (None: the current one). Raise KubeconfigError."""
    paths = _paths()
    found = _merged(paths)
    named = context or found["current"]
    where = ":".join(map(str, paths))
    if not named:
        raise KubeconfigError(f"{where}: no current context: give one with --context ({_known(found['contexts'])})")
    if named not in found["contexts"]:
        raise KubeconfigError(f"{where}: no context '{plain_text.plain(named)}' ({_known(found['contexts'])})")
    chosen, _ = found["contexts"][named]
    cluster, cluster_folder = _entry(found, "clusters", chosen.get("cluster"), named)
    user, user_folder = _entry(found, "users", chosen.get("user"), named)
    return Access(
        named,
        _server(cluster, named),
        str(chosen.get("namespace") or "default"),
        cluster,
        user,
        cluster_folder,
        user_folder,
    )


def _paths() -> list[Path]:
    named = [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    paths = [path for path in named or [Path(DEFAULT).expanduser()] if path.exists()]
    if not paths:
        looked = ":".join(map(str, named)) or DEFAULT
        raise KubeconfigError(f"no kubeconfig: {looked} does not exist: set KUBECONFIG to the file of your cluster")
    return paths


def _merged(paths: list[Path]) -> dict[str, Any]:
    """Return the entries by name with the folder of their file; of two with one name, the first counts."""
    found: dict[str, Any] = {"clusters": {}, "contexts": {}, "users": {}, "current": ""}
    for path in paths:
        data = _read(path)
        found["current"] = found["current"] or str(data.get("current-context") or "")
        for kind in ("clusters", "contexts", "users"):
            for name, content in _entries(path, data.get(kind), kind[:-1]):
                found[kind].setdefault(name, (content, path.absolute().parent))
    return found


def _entries(path: Path, every: Any, kind: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        return [(str(each["name"]), dict(each[kind] or {})) for each in every or []]
    except (KeyError, TypeError, ValueError):
        raise KubeconfigError(f"{path}: a {kind} is damaged: it needs a name and a {kind}") from None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = path.read_text("utf-8")
        data = json.loads(content) if content.startswith("{") else yaml.safe_load(content)
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise KubeconfigError(f"{path} cannot be read: {_said(problem)}") from None
    if not isinstance(data, dict):
        raise KubeconfigError(f"{path} is not a kubeconfig")
    return data


def _entry(found: Mapping[str, Any], kind: str, name: Any, context: str) -> tuple[dict[str, Any], Path]:
    if name not in found[kind]:
        raise KubeconfigError(f"kubeconfig: context {context!r} names {kind[:-1]} {name!r}, which is not there")
    entry: tuple[dict[str, Any], Path] = found[kind][name]
    return entry


def _server(cluster: Mapping[str, Any], context: str) -> str:
    server = str(cluster.get("server") or "")
    parts = urllib.parse.urlsplit(server)
    if parts.scheme != "https" or not parts.hostname:
        raise KubeconfigError(
            f"kubeconfig: the server of context {context!r} is {plain_text.without_logins(server)!r}: only https is supported"
        )
    if cluster.get("proxy-url"):
        raise KubeconfigError(f"kubeconfig: context {context!r} has a proxy-url, which nodetune cannot use")
    return server.rstrip("/")


def _known(contexts: Mapping[str, Any]) -> str:
    names = ", ".join(plain_text.plain(each, 60) for each in sorted(contexts)[:8])
    return f"there are: {names}" if names else "there are none"


def _path(entry: Mapping[str, Any], name: str, folder: Path) -> str | None:
    return str(folder / str(entry[name])) if entry.get(name) else None


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(str(text), validate=False)
    except binascii.Error as problem:
        raise KubeconfigError(f"kubeconfig: a certificate or key is not valid base64: {problem}") from None


def _said(problem: Exception) -> str:
    if isinstance(problem, subprocess.TimeoutExpired):  # its text has the arguments, which may hold a token
        return f"it did not end within {problem.timeout:g} s"
    return plain_text.plain(getattr(problem, "strerror", None) or str(problem), 200)


def asked_plugin(user: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the status of the ExecCredential that a user's credential plugin prints. Raise KubeconfigError."""
    plugin = user["exec"]
    version = str(plugin.get("apiVersion") or "client.authentication.k8s.io/v1")
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    environment |= {str(each["name"]): str(each["value"]) for each in plugin.get("env") or []}
    program = str(plugin.get("command") or "")
    command = [str(folder / program) if "/" in program else program, *map(str, plugin.get("args") or [])]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PLUGIN_SECONDS, check=False
        )
    except FileNotFoundError:
        hint = plain_text.plain(plugin.get("installHint") or "install it", 200)
        raise KubeconfigError(f"the credential plugin {program} is not installed: {hint}") from None
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise KubeconfigError(f"the credential plugin {program} failed: {_said(problem)}") from None
    try:
        status = json.loads(done.stdout)["status"]
        if done.returncode == 0 and (status.get("token") or status.get("clientCertificateData")):
            return dict(status)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    last = plain_text.plain((done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no credential"])[-1], 200)
    raise KubeconfigError(f"the credential plugin {program} gave no credential (exit status {done.returncode}): {last}")
