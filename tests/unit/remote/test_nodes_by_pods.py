"""Nodes of Kubernetes through its API: a substitute with real TLS and websockets. The real one: tests/integration/test_audit_by_pods.py."""

import base64
import hashlib
import json
import os
import sys
import time

import pytest
import yaml

from nodetune.hosts.connection_options import Cluster, ConnectionOptions, SessionOptions
from nodetune.remote import connect, payload, pool
from nodetune.remote.kubernetes import api, exec_channel, kubeconfig, nodes, pod, websocket
from tests.support import api_server

ASKED = {"host": ["arch"]}


@pytest.fixture
def server(tmp_path, monkeypatch):
    with api_server.serving(tmp_path) as started:
        use(started.kubeconfig(), tmp_path, monkeypatch)
        yield started
    api.connected.cache_clear()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(exec_channel, "BUSY_SECONDS", 0.01)
    monkeypatch.setattr(connect, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(pod, "LOOK_SECONDS", 0.01)


def use(config, folder, monkeypatch, name="kubeconfig"):
    """Take this kubeconfig from now on."""
    (folder / name).write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(folder / name))
    api.connected.cache_clear()


def options(inventory=None, seconds=30.0, limit=None, **cluster):
    session = SessionOptions(seconds=seconds, cluster=Cluster(**cluster))
    return ConnectionOptions(inventory, limit=limit, transport="kubernetes", options=session)


def select(*given, **more):
    return nodes.selected(options(*given, **more), lambda _text: None)


def audit(targets=None, **more):
    """Return facts or error by node."""
    chosen = options(**more)
    found = pool.collect(
        select(**more) if targets is None else targets,
        lambda _target: payload.script_in_pod(ASKED, 5.0, whole=30.0),
        chosen.options,
        transport="kubernetes",
        asked=ASKED,
    )
    return {target.name: outcome for target, outcome, _ in found}


def one(**more):
    (found,) = audit(**more).values()
    return found


def refused(**more):
    found = one(**more)
    return found.state, found.message


# Who we are


def plugin(folder, code):
    path = folder / "plugin"
    path.write_text(f"#!{sys.executable}\nimport json, os\n{code}\n")
    path.chmod(0o700)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "env": [{"name": "A", "value": "token-of-plugin"}],
        }
    }


ANSWERS = 'print(json.dumps({"status": {"token": os.environ["A"], "expirationTimestamp": "2999-01-01T00:00:00Z"}}))'


@pytest.mark.parametrize("kind", ["token", "file", "plugin"])
@pytest.mark.parametrize("written", [json.dumps, yaml.safe_dump])
def test_a_token_comes_from_the_kubeconfig_a_file_or_a_plugin(server, tmp_path, monkeypatch, kind, written):
    (tmp_path / "its-token").write_text("token-of-file\n")
    user = {
        "token": {"token": "token-of-token"},
        "file": {"tokenFile": "its-token"},
        "plugin": plugin(tmp_path, ANSWERS),
    }[kind]
    use(written(server.kubeconfig(**user)), tmp_path, monkeypatch)
    assert [target.name for target in select()] == ["gpu1"]
    assert set(server.tokens) == {f"Bearer token-of-{kind}"}


def test_a_client_certificate_is_shown_to_the_server(server, tmp_path, monkeypatch):
    pem = (tmp_path / "server.pem").read_bytes()
    server.tls.load_verify_locations(tmp_path / "server.pem")
    server.tls.verify_mode = 2  # it ends a connection without a certificate
    with pytest.raises(nodes.NodesError, match="certificate required|handshake|reset|eof"):
        select()
    data = base64.b64encode(pem).decode()
    use(server.kubeconfig(**{"client-certificate-data": data, "client-key-data": data}), tmp_path, monkeypatch)
    assert len(select()) == 1
    use(server.kubeconfig(**{"client-certificate": "server.pem"}), tmp_path, monkeypatch)
    assert len(select()) == 1
    assert set(server.tokens) == {None}


def test_a_credential_that_is_refused_is_asked_for_once_more(server, tmp_path, monkeypatch):
    server.refusals["GET /api/v1/nodes"] = [(401, "Unauthorized")]
    use(server.kubeconfig(**plugin(tmp_path, f"open('asked', 'a').write('x')\n{ANSWERS}")), tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert len(select()) == 1
    assert (tmp_path / "asked").read_text() == "xx"


def test_of_several_kubeconfigs_the_first_counts(server, tmp_path, monkeypatch):
    other = {"current-context": "other", "users": [{"name": "u", "user": {"token": "wrong"}}], "contexts": []}
    (tmp_path / "second").write_text(yaml.safe_dump(other))
    paths = [tmp_path / "none", tmp_path / "kubeconfig", tmp_path / "second"]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
    found = kubeconfig.access()
    assert (found.context, found.token(), found.server) == ("lab", "secret", server.address)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda made: made.update({"current-context": ""}), "no current context: give one with --context (there are: lab)"),
        (lambda made: made.update({"current-context": "x\x1b"}), "no context 'x\\x1b' (there are: lab)"),
        (lambda made: made.update(users=[]), "kubeconfig: context 'lab' names user 'u', which is not there"),
        (lambda made: made.update(clusters=["c"]), "a cluster is damaged: it needs a name and a cluster"),
        (lambda made: made["clusters"][0]["cluster"].update(server="http://a"), "is 'http://a': only https is supported"),
        (lambda made: made["clusters"][0]["cluster"].update({"proxy-url": "p"}), "has a proxy-url, which nodetune cannot use"),
        (lambda made: made["users"][0].update(user={"tokenFile": "none"}), "none: No such file or directory"),
        (lambda made: made["users"][0].update(user={"exec": {"command": "no-such", "installHint": "pip install it"}}), "the credential plugin no-such is not installed: pip install it"),
        (lambda made: made["clusters"][0]["cluster"].update({"certificate-authority-data": "AAAA"}), "the certificate authority cannot be read"),
        (lambda made: made["users"][0].update(user={"client-certificate": "none"}), "the client certificate cannot be read: No such file"),
    ],
)  # fmt: skip
def test_a_kubeconfig_that_cannot_be_used_is_one_clear_line(server, tmp_path, monkeypatch, change, told):
    made = server.kubeconfig()
    change(made)
    use(made, tmp_path, monkeypatch)
    with pytest.raises(kubeconfig.KubeconfigError) as problem:
        select()
    assert told in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("content", ["{", "[1]", "a: [", "\x00"])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path, monkeypatch, content):
    use(content, tmp_path, monkeypatch)
    with pytest.raises(
        kubeconfig.KubeconfigError, match=f"^{tmp_path}/kubeconfig (cannot be read|is not a kubeconfig)"
    ):
        kubeconfig.access()


def test_a_plugin_that_fails_is_quoted(server, tmp_path, monkeypatch):
    use(server.kubeconfig(**plugin(tmp_path, "raise SystemExit('log in first')")), tmp_path, monkeypatch)
    with pytest.raises(kubeconfig.KubeconfigError, match=r"gave no credential \(exit status 1\): log in first"):
        select()


# Which nodes


def test_nodes_are_selected_by_labels_names_and_limit(server):
    server.nodes = [api_server.node(f"gpu{number}", gpu=str(number % 2)) for number in range(1, 6)]
    assert [target.name for target in select()] == ["gpu1", "gpu2", "gpu3", "gpu4", "gpu5"], "three pages"
    assert [target.name for target in select("nodes: gpu=1")] == ["gpu1", "gpu3", "gpu5"]
    assert [target.name for target in select("gpu[2-3]")] == ["gpu2", "gpu3"]
    assert [target.name for target in select("nodes:", limit="gpu*:!gpu1:!gpu2")] == ["gpu3", "gpu4", "gpu5"]


@pytest.mark.parametrize(
    ("inventory", "told"),
    [
        ("nodes: gpu=9", "-i: no node of {} has the labels 'gpu=9' (kubectl get nodes --show-labels)"),
        ("gpu01", "-i: no node is named 'gpu01': did you mean gpu1? (a label selector begins with nodes:)"),
    ],
)
def test_a_selection_that_matches_nothing_is_named(server, inventory, told):
    with pytest.raises(nodes.NodesError) as problem:
        select(inventory)
    assert str(problem.value) == told.format(server.address[8:])


def test_a_node_that_cannot_be_reached_says_why(server):
    server.nodes = [api_server.node("a", ready="Unknown"), *map(api_server.node, "bcd")]
    server.pods = [api_server.running("nodetune-b", "b", "Pending"), api_server.running("nodetune-d", "d")]
    failing = {"name": "check", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    server.pods[1]["status"]["containerStatuses"] = [{"name": "reporter", "state": {"running": {}}}, failing]
    told = {name: (found.state, found.message) for name, found in audit().items()}
    assert told == {
        "a": ("unreachable", "the node is not Ready: kubelet stopped posting node status"),
        "b": ("no pod", "its pod nodetune/nodetune-b is Pending, not Running (kubectl describe pod)"),
        "d": ("no pod", "its pod nodetune/nodetune-d is CrashLoopBackOff, not Running (kubectl describe pod)"),
        "c": ("no pod", "the DaemonSet has no pod on it in namespace nodetune: install the chart, or give an image with --image"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [
        (401, "Unauthorized", "does not accept the credential of context 'lab' (401): log in again, or renew it"),
        (403, 'nodes is forbidden: User "u" cannot list resource "nodes"', 'not allowed (403): nodes is forbidden: User "u" cannot list resource "nodes"'),
        (500, "etcd\x1b is away", "answered 500: etcd\\x1b is away"),
    ],
)  # fmt: skip
def test_a_server_that_says_no_is_quoted(server, status, message, told):
    server.refusals["GET /api/v1/nodes"] = [(status, message)] * 5
    with pytest.raises(nodes.NodesError) as problem:
        select()
    assert str(problem.value).endswith(told)


def test_a_server_that_is_too_busy_is_asked_again(server):
    server.refusals["GET /api/v1/nodes"] = [(429, "slow down", ("Retry-After", "0"))] * 3
    assert len(select()) == 1
    assert server.requests.count("GET /api/v1/nodes") == 4


def test_a_list_that_grew_too_old_continues_where_it_was(server):
    server.nodes = [api_server.node(f"gpu{number}") for number in range(5)]
    first = {"items": server.nodes[:2], "metadata": {"continue": "old"}}
    gone = {"message": "the provided continue parameter is too old", "metadata": {"continue": "2"}}
    server.refusals["GET /api/v1/nodes"] = [(200, first), (410, gone)]
    assert [target.name for target in select()] == ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4"]
    server.refusals["GET /api/v1/nodes"] = [(410, gone)] * 2
    with pytest.raises(nodes.NodesError, match="answered 410: the provided continue parameter is too old"):
        select()


def test_an_answer_one_byte_above_the_limit_is_cut_off_and_said_to_be(server, monkeypatch):
    page = {"items": server.nodes, "metadata": {}}
    server.refusals["GET /api/v1/nodes"] = [(200, page)] * 2
    size = len(json.dumps(page).encode())
    monkeypatch.setattr(api, "MAX_BYTES", size)
    assert len(select()) == 1
    monkeypatch.setattr(api, "MAX_BYTES", size - 1)
    with pytest.raises(nodes.NodesError, match=r"an answer of more than .*: cut off"):
        select()


def test_a_server_that_does_not_answer_is_named(server, tmp_path, monkeypatch):
    made = server.kubeconfig()
    made["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    use(made, tmp_path, monkeypatch)
    with pytest.raises(nodes.NodesError, match=r"the API server 127.0.0.1:1 cannot be reached: connection refused"):
        select()


def test_a_server_of_another_cluster_is_not_trusted(server, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    made = server.kubeconfig()
    _, made["clusters"][0]["cluster"]["certificate-authority-data"] = api_server.certificate(tmp_path / "other")
    use(made, tmp_path, monkeypatch)
    with pytest.raises(
        nodes.NodesError, match="its certificate is not valid: .*: the kubeconfig's certificate-authority is of"
    ):
        select()


# One session


def test_facts_come_back_through_the_pod_of_the_node(server):
    found = one()
    assert (found.host, found.about["transport"]) == ("gpu1", "kubernetes")
    assert found.facts["host.arch"].value == "x86_64"


def test_frames_in_pieces_pings_and_other_output_do_no_harm(server):
    def say(session, script):
        answer = api_server.facts(script)
        session.raw(b"\x89\x04ping")
        assert session.frame() == b"ping"
        session.out(b"motd\n").errors(b"a warning\n")
        session.send(1, answer[:50], kind=0x02).raw(b"\x80" + bytes([50]) + answer[50:100]).out(answer[100:]).end()

    server.say = say
    assert one().facts["host.arch"].value == "x86_64"


def test_a_pod_without_the_privilege_is_no_wrong_password(server):
    server.say = lambda session, _: session.errors(b"nodetune: the pod is not privileged (unshare: x)\n").failed(1)
    assert refused() == ("no privilege", "the pod is not privileged (unshare: x)")


@pytest.mark.parametrize(
    ("say", "state", "told"),
    [
        (lambda session, _: session.failed(1), "bad answer", "the host printed nothing (exit status 1)"),
        (lambda session, _: session.out(b"hello\n").end(), "bad answer", "no probe answer in its output, which begins: hello (exit status 0)"),
        (lambda session, _: session.end(b'{"status": "Failure", "message": "container not running"}'), "unreachable", "container not running"),
        (lambda session, _: session.end(b'{"message": "exec: python3: executable file not found"}'), "no python", "exec: python3: executable file not found"),
        (lambda session, _: session.end(b"[" * 100), "dropped", "the connection ended before any answer"),
        (lambda session, _: session.raw(b"\x82\x7f" + b"\xff" * 8), "dropped", "the session in pod nodetune-a broke: a frame of 18446744073709551615 bytes"),
        (lambda session, _: session.raw(b"\x8b\x01x"), "dropped", "the session in pod nodetune-a broke: an unknown frame"),
        (lambda session, _: None, "dropped", "the session in pod nodetune-a broke: the connection ended"),
        (lambda session, script: session.out(api_server.facts(script)[:40]), "dropped", "the session in pod nodetune-a broke: the connection ended"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_told(server, say, state, told):
    server.say = say
    assert refused() == (state, told)


def test_a_pod_cannot_fill_our_memory(server):
    server.say = lambda session, _: [session.out(b"x" * 60_000) for _ in range(1000)]
    state, message = refused()
    assert (state, message[:21]) == ("too much output", "cut off after 4 MiB; ")


def test_a_session_that_hangs_ends_at_its_deadline(server):
    server.say = lambda session, _: session.frame()
    state, message = refused(seconds=0.5)
    assert (state, "was waiting for the probe's answer" in message) == ("deadline", True)


@pytest.mark.parametrize(
    ("status", "times", "told"),
    [
        (403, 1, ("authentication failed", "not allowed (403): no")),
        (404, 1, ("unreachable", "the API server {} answered 404: no")),
        (500, 2, ("dropped", "the API server {} answered 500: no")),
    ],
)
def test_a_session_that_is_refused_says_why(server, status, times, told):
    server.refusals["/exec"] = [(status, "no")] * times
    state, message = told
    assert refused() == (state, message.format(server.address[8:]))
    assert server.refusals["/exec"] == [], "a server that fails is asked twice"


def test_a_session_is_asked_for_again_after_a_short_refusal(server):
    server.refusals["/exec"] = [(429, "busy"), (500, "error dialing backend"), (429, "busy")]
    assert one().facts["host.arch"].value == "x86_64"


def test_of_two_nodes_one_that_hangs_does_not_delay_the_other(server):
    server.nodes.append(api_server.node("gpu2"))
    server.pods.append(api_server.running("nodetune-b", "gpu2"))
    answer, server.say = (
        server.say,
        lambda session, script: session.frame() if "nodetune-b" in session.handler.path else answer(session, script),
    )
    found = audit(seconds=1.0)
    assert found["gpu1"].facts["host.arch"].value == "x86_64"
    assert found["gpu2"].state == "deadline"


def test_an_old_api_server_is_named(server, monkeypatch):
    monkeypatch.setattr(websocket, "PROTOCOL", "v5")
    answered = []

    class Old:
        def sendall(self, data):
            answered.append(data)

        def recv(self, _most):
            key = answered[0].split(b"Sec-WebSocket-Key: ")[1].split(b"\r\n")[0] + api_server.GUID.encode()
            accepted = base64.b64encode(hashlib.sha1(key).digest())
            return b"HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: " + accepted + b"\r\n\r\n"

    with pytest.raises(websocket.RefusedError, match=r"does not know v5: Kubernetes 1.30 or newer is needed"):
        websocket.Channels(Old()).open("h", "/", {})


# A pod for one session


def test_a_node_without_a_pod_gets_one_while_it_is_read(server):
    server.pods = []
    assert one(image="registry/nodetune-node:1").facts["host.arch"].value == "x86_64"
    (made,) = server.made
    assert made["spec"]["nodeName"] == "gpu1"
    assert made["spec"]["containers"][0]["image"] == "registry/nodetune-node:1"
    path = f"/api/v1/namespaces/nodetune/pods/{made['metadata']['name']}"
    assert [each for each in server.requests if path in each] == [f"GET {path}", f"GET {path}/exec", f"DELETE {path}"]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such host"}}}]}, "the pod did not start: ErrImagePull: no such host"),
        ({"phase": "Failed", "reason": "NodeAffinity", "message": "not here"}, "the pod did not start: NodeAffinity: not here"),
    ],
)  # fmt: skip
def test_a_pod_that_cannot_start_is_removed_and_says_why(server, status, told):
    server.pods, server.starts = [], status
    assert refused(image="i") == ("no pod", told)
    assert server.requests[-1].startswith("DELETE")


def test_a_pod_that_is_not_allowed_says_why(server):
    server.pods, server.refusals["POST"] = [], [(403, "violates PodSecurity baseline")]
    assert refused(image="i") == ("authentication failed", "not allowed (403): violates PodSecurity baseline")


def test_a_pod_that_starts_too_late_is_removed(server):
    server.pods, server.starts = [], {"phase": "Pending"}
    state, message = refused(image="i", seconds=0.3)
    assert (state, "was waiting for its pod to start" in message) == ("deadline", True)
    end = time.monotonic() + 60
    while not server.requests[-1].startswith("DELETE"):
        assert time.monotonic() < end
        time.sleep(0.01)
