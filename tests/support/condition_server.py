"""A substitute for the API server of Kubernetes that answers as a test wants, over TLS."""

import contextlib
import datetime
import http.server
import ipaddress
import json
import ssl
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def certificate(folder):
    """Write a certificate for 127.0.0.1, which is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "substitute")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)


class Listening(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # of many nodes at once


class ApiServer:
    """`answers` has what comes next: a status, (status, headers), "stall", "drip", "cut" or "half"; then 200.

    `requests` has what was asked. `token`, if there is one, is the only one that is accepted. `nodes` maps the names of
    nodes to the types of their conditions; they are listed two at a time. `conditions` has what was patched, by node and type.
    """

    def __init__(self, folder):
        self.folder, self.answers, self.requests = folder, [], []
        self.nodes, self.token, self.conditions = {}, "", {}
        certificate(folder)
        (folder / "token").write_text("first")
        self.over = threading.Event()

    @contextlib.contextmanager
    def running(self):
        trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trusted.load_cert_chain(self.folder / "ca.crt", self.folder / "key.pem")
        server = Listening(("127.0.0.1", 0), self._handler())
        server.socket = trusted.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.daemon_threads = True
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            server.shutdown()
            thread.join()
            server.server_close()

    def _handler(self):
        there = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PATCH(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                there.requests.append((self.path, dict(self.headers), json.loads(body)))
                there.answer(self)

            do_POST = do_PATCH  # noqa: N815  (as the library names it)

            def do_GET(self):
                names, at = sorted(there.nodes), int(self.path.partition("continue=")[2] or 0)
                items = [_node(name, there.nodes[name]) for name in names[at : at + 2]]
                more = str(at + 2) if at + 2 < len(names) else ""
                _send(self, 200, {"metadata": {"continue": more}, "items": items})

            def log_message(self, *_):
                pass

        return Handler

    def answer(self, handler):
        how = self.answers.pop(0) if self.answers else 200
        if self.token and handler.headers["Authorization"] != f"Bearer {self.token}":
            how = 401
        if how == "stall":
            self.over.wait()
        elif how == "drip":
            while not self.over.wait(0.02):
                with contextlib.suppress(OSError):
                    handler.wfile.write(b"H")
        elif how == "half":
            handler.wfile.write(b"HTTP/1.1 50")
        elif how != "cut":
            status, headers = how if isinstance(how, tuple) else (how, {})
            path, _, body = self.requests[-1]
            told = {"kind": "Status", "message": f"said with {status}"}
            if status == 200 and path.endswith("/status"):
                node = path.split("/")[-2]
                self._patch(node, body["status"]["conditions"])
                told = {"status": {"conditions": list(self.conditions.get(node, {}).values())}}
            _send(handler, 201 if path.endswith("/events") and status == 200 else status, told, headers)

    def _patch(self, node, conditions):
        """As a strategic merge patch does it."""
        there = self.conditions.setdefault(node, {})
        for each in conditions:
            if each.get("$patch") != "delete":
                there[each["type"]] = {**there.get(each["type"], {}), **each}
                continue
            there.pop(each["type"], None)
            if each["type"] in self.nodes.get(node, ()):
                self.nodes[node].remove(each["type"])


def _node(name, conditions):
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": each} for each in conditions]}}


def _send(handler, status, data, headers=()):
    handler.send_response(status)
    said = json.dumps(data).encode()
    for name, value in {**dict(headers), "Content-Length": str(len(said))}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(said)
