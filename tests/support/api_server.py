"""A substitute for the API server of Kubernetes: real TLS, real HTTP and websockets; nodes, pods and faults as planted."""

import base64
import hashlib
import json
import re
import ssl
import struct
import threading
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nodetune.onhost import layout, protocol
from nodetune.remote.kubernetes import pod

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
SUCCESS = b'{"status": "Success"}'


def certificate(folder):
    """Write the certificate and key of 127.0.0.1. Return the file with both, and the certificate as base64."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "substitute")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = serialization.PrivateFormat.PKCS8
    written = key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())
    (folder / "server.pem").write_bytes(pem + written)
    return folder / "server.pem", base64.b64encode(pem).decode()


def node(name, ready="True", **labels):
    condition = {"type": "Ready", "status": ready, "message": "kubelet stopped posting node status"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"conditions": [condition]}}


def running(name, on, phase="Running"):
    return {"metadata": {"name": name}, "spec": {"nodeName": on}, "status": {"phase": phase}}


def facts(script):
    """Return what a probe that was sent as this script answers."""
    nonce = re.search(rb"NONCE = '(\w+)'", script)[1].decode()
    return protocol.encode(layout.text({"host": "gpu1", "facts": {"host.arch": {"value": "x86_64"}}}).encode(), nonce)


class Server(ThreadingHTTPServer):
    """`refusals` are answers before the usual ones: path pattern → [(status, message or content, headers)].

    `say(exec, script)` answers a session.
    """

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        path, self.authority = certificate(folder)
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(path)
        self.nodes, self.pods, self.made = [node("gpu1")], [running("nodetune-a", "gpu1")], []
        self.refusals, self.requests, self.tokens, self.opened = {}, [], [], threading.Event()
        self.say = lambda session, script: session.out(facts(script)).end()
        self.starts = {"phase": "Running"}

    def get_request(self):
        plain, address = super().get_request()
        plain.settimeout(60)
        return self.tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_):
        """A client that leaves is a part of many tests."""

    def kubeconfig(self, **user):
        return {
            "current-context": "lab",
            "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": self.address, "certificate-authority-data": self.authority}}
            ],
            "users": [{"name": "u", "user": user or {"token": "secret"}}],
        }

    @property
    def address(self):
        return f"https://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Keep quiet."""

    def answer(self, content, status=200, headers=()):
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (("Content-Length", len(data)), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def handle_any(self):
        parts = urlsplit(self.path)
        self.server.requests.append(f"{self.command} {parts.path}")
        self.server.tokens.append(self.headers.get("Authorization"))
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        for pattern, left in self.server.refusals.items():
            if left and re.search(pattern, f"{self.command} {parts.path}"):
                status, message, *headers = left.pop(0)
                content = message if isinstance(message, dict) else {"kind": "Status", "message": message}
                return self.answer(content, status, headers)
        return self.usual(parts.path, parse_qs(parts.query), body)

    do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815  (names of http.server)

    def usual(self, path, query, body):
        if path == "/api/v1/nodes":
            return self.answer(self.page(self.server.nodes, query))
        if path.startswith("/api/v1/nodes/"):
            return self.node(
                next(each for each in self.server.nodes if path.endswith("/" + each["metadata"]["name"])), body
            )
        if path.endswith("/eviction"):
            self.server.pods = [
                each
                for each in self.server.pods
                if each["metadata"].get("uid") != body["deleteOptions"]["preconditions"]["uid"]
            ]
        if self.command == "POST":
            self.server.made.append(body)
            return self.answer(body, 201)
        if path.endswith("/exec"):
            return Session(self).serve()
        if path.endswith("/pods"):
            return self.answer(self.page(self.server.pods, query))
        return self.answer({"status": self.server.starts})

    def node(self, found, body):
        """Answer for one node; a merge patch or a JSON patch changes its cordon and its annotations."""
        metadata, spec = found["metadata"], found.setdefault("spec", {})
        held = {
            **{f"/metadata/annotations/{name}": text for name, text in metadata.get("annotations", {}).items()},
            "/spec/unschedulable": spec.get("unschedulable"),
        }
        if isinstance(body, dict):
            metadata.setdefault("annotations", {}).update(body["metadata"]["annotations"])
            spec.update(body["spec"])
        if isinstance(body, list):
            if any(held.get(step["path"].replace("~1", "/")) != step["value"] for step in body if step["op"] == "test"):
                return self.answer({"message": "the server rejected our request due to an error in our request"}, 422)
            metadata["annotations"].clear()
            spec.clear()
        return self.answer(found)

    def page(self, every, query):
        """Return two objects a page."""
        wanted = dict(each.split("=") for each in query.get("labelSelector", [""])[0].split(",") if each)
        if wanted == pod.LABELS:
            wanted = {}
        matching = [each for each in every if wanted.items() <= each["metadata"].get("labels", {}).items()]
        at = int(query.get("continue", ["0"])[0])
        more = {"continue": str(at + 2)} if at + 2 < len(matching) else {}
        return {"items": matching[at : at + 2], "metadata": more}


class Session:
    """One exec: the server's side of its websocket."""

    def __init__(self, handler):
        self.handler, self.script, self.rest = handler, b"", b""
        self.command = parse_qs(urlsplit(handler.path).query)["command"]

    def serve(self):
        key = self.handler.headers["Sec-WebSocket-Key"] + GUID
        self.handler.send_response(101)
        for name, value in (
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()),
            ("Sec-WebSocket-Protocol", self.handler.headers["Sec-WebSocket-Protocol"]),
        ):
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.close_connection = True
        while not self.complete():
            self.script += self.frame()[1:]
        self.handler.server.opened.set()
        self.handler.server.say(self, self.script)

    def complete(self):
        """Whether the whole script is here, by the length in its first line."""
        first = re.match(rb"exec.*?len\(d\) < (\d+)[^\n]*\n", self.script)
        return first is not None and len(self.script) - first.end() >= int(first[1])

    def frame(self):
        """Return the content of the client's next frame; empty if it has left."""
        head = self.handler.rfile.read(2)
        if len(head) < 2:
            return b""
        size = head[1] & 127
        assert head[1] & 128, "a client masks its frames"
        size = struct.unpack("!H", self.handler.rfile.read(2))[0] if size == 126 else size
        mask, data = self.handler.rfile.read(4), self.handler.rfile.read(size)
        return bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))

    def raw(self, data):
        self.handler.wfile.write(data)
        return self

    def send(self, channel, data, kind=0x82):
        data = bytes([channel]) + data
        size = len(data)
        length = (
            bytes([size])
            if size < 126
            else b"\x7e" + struct.pack("!H", size)
            if size < 65536
            else b"\x7f" + struct.pack("!Q", size)
        )
        return self.raw(bytes([kind]) + length + data)

    def out(self, data):
        return self.send(1, data)

    def errors(self, data):
        return self.send(2, data)

    def end(self, status=SUCCESS):
        return self.send(3, status).raw(b"\x88\x02\x03\xe8")

    def failed(self, code):
        causes = [{"reason": "ExitCode", "message": str(code)}]
        return self.end(json.dumps({"status": "Failure", "details": {"causes": causes}}).encode())


@contextmanager
def serving(folder):
    server = Server(folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
