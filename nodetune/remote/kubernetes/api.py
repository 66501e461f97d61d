"""The API server over HTTPS: one connection a request, every answer bounded, every refusal one line."""

import http.client
import json
import random
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any

from nodetune.foundation import text as plain_text
from nodetune.remote.kubernetes import kubeconfig

MAX_BYTES = 64 << 20
"""Limit for one answer: a page of nodes with all their images takes a few MiB."""

PAGE = 250
"""Objects in one answer."""

SECONDS = 30.0
"""Time limit for one answer."""

LATE_SECONDS = 30.0
"""A credential that ends this soon is renewed."""

MAX_WAIT = 10.0
BUSY, GONE = 429, 410
TRIES = 5


class ApiError(Exception):
    """An answer other than success; `status` is 0 if there was none. One line. `more`: how a list that was cut off continues."""

    def __init__(self, status: int, message: str, more: str = "") -> None:
        super().__init__(message)
        self.status, self.more = status, more


class Api:
    """An API server, for any number of threads."""

    def __init__(self, access: kubeconfig.Access) -> None:
        self.access = access
        parts = urllib.parse.urlsplit(access.server)
        self._host, self._port, self._prefix = parts.hostname or "", parts.port or 443, parts.path
        self._tls = access.tls()
        self._lock = threading.Lock()
        self._issued: str | None = None
        self._until = 0.0
        self._asked = False

    @property
    def name(self) -> str:
        return f"{self._host}:{self._port}"

    def items(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list, page by page. Raise ApiError.

        A list that takes minutes is too old to go on (410): the rest is then of a later time.
        """
        asked, cut = {**(query or {}), "limit": str(PAGE)}, False
        while True:
            try:
                page, cut = self.request("GET", path, query=asked), False
            except ApiError as problem:
                if cut or problem.status != GONE or not problem.more:
                    raise
                page, cut = {"metadata": {"continue": problem.more}}, True
            yield from (each for each in page.get("items") or [] if isinstance(each, dict))
            more = _more(page)
            if not more:
                return
            asked["continue"] = more

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Any] | None = None,
        query: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        kind: str = "json",
        tries: int = TRIES,
    ) -> dict[str, Any]:
        """Return the answer. Wait and ask again while the server is too busy, and once with a new credential. Raise ApiError.

        `kind` is that of a patch: merge-patch+json or json-patch+json.
        """
        renewed = False
        for number in range(tries):
            status, answer, wait = self._asked_once(method, path, body, query, seconds, kind)
            if status < 300:
                return answer
            if status == 401 and not renewed and self.renew():
                renewed = True
            elif status != BUSY or number == tries - 1:
                break
            else:
                time.sleep(wait)
        raise ApiError(status, self.refused(status, str(answer.get("message") or "")), _more(answer))

    def _asked_once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Sequence[Any] | None,
        query: Mapping[str, str] | None,
        seconds: float,
        kind: str,
    ) -> tuple[int, dict[str, Any], float]:
        way = http.client.HTTPConnection(self._host, self._port)
        way.sock = self.connected(seconds)
        try:
            data = json.dumps(body).encode() if body is not None else None
            headers = {**self.headers(), "Accept": "application/json"}
            way.request(method, self.path(path, query or {}), data, {**headers, "Content-Type": f"application/{kind}"})
            answer = way.getresponse()
            content = answer.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise ApiError(0, f"{self.name}: an answer of more than {plain_text.size(MAX_BYTES)}: cut off")
            return answer.status, _object(content, answer.status, self.name), _wait(answer.headers.get("Retry-After"))
        except (OSError, http.client.HTTPException) as problem:
            raise ApiError(0, f"the API server {self.name} did not answer {method} {path}: {said(problem)}") from None
        finally:
            way.close()

    def path(self, path: str, query: Mapping[str, str] | list[tuple[str, str]]) -> str:
        asked = urllib.parse.urlencode(query)
        return f"{self._prefix}{path}{'?' if asked else ''}{asked}"

    def connected(self, seconds: float) -> ssl.SSLSocket:
        """Return a new connection whose reads and writes have this time limit. Raise ApiError."""
        plain = None
        try:
            plain = socket.create_connection((self._host, self._port), seconds)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            named = str(self.access.cluster.get("tls-server-name") or self._host)
            return self._tls.wrap_socket(plain, server_hostname=named)
        except ssl.SSLCertVerificationError as problem:
            reason = f"its certificate is not valid: {problem.verify_message}: the kubeconfig's certificate-authority is of another cluster, or outdated"
        except (OSError, ValueError) as problem:
            reason = said(problem)
        if plain is not None:
            plain.close()
        raise ApiError(0, f"the API server {self.name} cannot be reached: {reason}")

    def headers(self) -> dict[str, str]:
        """Return the headers that say who we are. Raise KubeconfigError."""
        token = self.access.token() or self._of_plugin()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _of_plugin(self) -> str | None:
        """Return the token of the credential plugin; it is asked again before it ends. Raise KubeconfigError."""
        if not self.access.user.get("exec"):
            return None
        with self._lock:
            if not self._asked or time.time() > self._until - LATE_SECONDS:
                status = kubeconfig.asked_plugin(self.access.user, self.access.user_folder)
                self._issued, self._asked = status.get("token"), True
                self._until = _time(status.get("expirationTimestamp"))
                if status.get("clientCertificateData"):
                    certificate, key = (str(status.get(f"client{each}Data")) for each in ("Certificate", "Key"))
                    kubeconfig.load_certificate(self._tls, certificate.encode(), key.encode())
            return self._issued

    def renew(self) -> bool:
        """Forget the credential of a plugin, so that it is asked again. Return whether there is a plugin."""
        with self._lock:
            self._asked = False
        return bool(self.access.user.get("exec"))

    def refused(self, status: int, message: str) -> str:
        """Describe an answer other than success."""
        told = plain_text.plain(message, 300) or http.client.responses.get(status, "no reason")
        if status == 401:
            return f"the API server {self.name} does not accept the credential of context {self.access.context!r} (401): log in again, or renew it"
        if status == 403:
            return f"not allowed (403): {told}"
        if status == BUSY:
            return f"the API server {self.name} is too busy (429): {told}"
        return f"the API server {self.name} answered {status}: {told}"


@cache
def connected(context: str | None) -> Api:
    """Return the API server of a context: one for all threads, and for the processes that are forked later. Raise KubeconfigError."""
    return Api(kubeconfig.access(context))


def said(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "no answer in time"
    return plain_text.plain(getattr(problem, "strerror", None) or str(problem) or type(problem).__name__, 200).lower()


def _object(content: bytes, status: int, name: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        found = json.loads(content)
        if isinstance(found, dict):
            return found
    if status < 300:
        raise ApiError(0, f"{name}: the answer is not JSON: is this an API server?")
    return {"message": content[:200].decode("utf-8", "replace").strip()}


def _more(answer: Mapping[str, Any]) -> str:
    """Return what the next page of a list is asked with."""
    metadata = answer.get("metadata")
    return str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""


def _wait(header: str | None) -> float:
    seconds = float(plain_text.whole(header or "") or 1)
    return min(seconds, MAX_WAIT) * random.uniform(0.8, 1.2)  # noqa: S311  (so that many do not come back together)


def _time(stamp: Any) -> float:
    """Return the Unix time of a credential's end; if it names none, it does not end."""
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return float("inf")
