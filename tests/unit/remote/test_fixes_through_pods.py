"""How fixes reach a node of Kubernetes: the shell in a pod, the pod itself, cordons and evictions. The API is a substitute."""

import re
import threading

import kubernetes_validate
import pytest
import yaml

from nodetune.foundation.request import RequestError
from nodetune.hosts.connection_options import Cluster, ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.onhost.host_command import ENDED, NOT_YET, UNKNOWN
from nodetune.remediation import host_operations, kubernetes
from nodetune.remediation.request import ApplyRequest
from nodetune.remediation.runs.connection import RECORDED, connection_record
from nodetune.remote.kubernetes import api, cordon, fix_pod, host_shell, pod
from nodetune.remote.login.deadline import Deadline
from tests.support import api_server

LIMITS = (1 << 16, 1 << 12, 1000)
RUN = "nodetune apply RUN"


@pytest.fixture
def server(tmp_path, monkeypatch):
    with api_server.serving(tmp_path) as started:
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(started.kubeconfig()))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        for place, name in ((host_shell, "PAUSE_SECONDS"), (cordon, "POLL_SECONDS"), (pod, "LOOK_SECONDS")):
            monkeypatch.setattr(place, name, 0.01)
        api.connected.cache_clear()
        yield started
    api.connected.cache_clear()


def sessions(server, *answers):
    """Let each session be answered in turn. Return what each was told to do, which fills as they come."""
    left, told = list(answers), []

    def say(session, script):
        told.append(re.findall(rb"^(start|sys.exit)\((.*)\)$", script, re.MULTILINE))
        left.pop(0)(session)

    server.say = say
    return told


def shell(most=LIMITS, seconds=40.0):
    return host_shell.HostShell(api.connected(None), "nodetune", "p", most, seconds)


def run(command="true"):
    return shell().run(command)


def refused():
    with pytest.raises(UnreachableError) as problem:
        run()
    return problem.value.state, problem.value.message


# The shell


def test_a_command_ends_with_its_own_status(server):
    sessions(server, lambda session: session.out(b"yes\n").errors(b"no\n\n3\n").failed(ENDED))
    assert run() == (3, b"yes\n", b"no\n")


@pytest.mark.parametrize(
    "cut",
    [
        lambda session: session.end(),
        lambda session: session.failed(137),
        lambda session: session.failed(NOT_YET),
        lambda session: session.end(b'{"status": "Failure", "message": "container not running"}'),
        lambda session: None,
    ],
    ids=["as success", "killed", "its time is over", "refused", "without an end"],
)
def test_a_command_outlives_its_session_and_is_not_repeated(server, cut):
    """A container runtime that restarts ends sessions as if their commands had succeeded."""
    told = sessions(
        server,
        lambda session: cut(session.out(b"ha")),
        lambda session: session.out(b"lf").errors(b"\n0\n").failed(ENDED),
    )
    assert run() == (0, b"half", b"")
    assert [[kind for kind, _ in each] for each in told] == [[b"start", b"sys.exit"], [b"sys.exit"]]
    assert b", 2, 0, 20.0)" in told[1][0][1], "from the third byte on"


def test_a_session_that_is_refused_for_a_while_is_asked_for_again(server):
    server.refusals["/exec"] = [(500, "error dialing backend")] * 3
    told = sessions(server, lambda session: session.errors(b"\n0\n").failed(ENDED))
    assert run()[0] == 0
    assert len(told) == 1


def test_a_slow_node_has_the_time_that_the_run_allows(server, monkeypatch):
    given = []
    monkeypatch.setattr(host_shell, "Deadline", lambda seconds: given.append(seconds) or Deadline(seconds))
    sessions(server, lambda session: session.errors(b"\n0\n").failed(ENDED))
    shell(seconds=240.0).run("true")
    assert given == [host_shell.FOLLOW_SECONDS + 240.0]
    assert host_shell.retry_seconds(240.0) >= given[0], "a session that takes all of it is not the last one"


def test_a_node_that_does_not_come_back_is_lost(server, monkeypatch):
    monkeypatch.setattr(host_shell, "retry_seconds", lambda _seconds: 0.05)
    server.refusals["/exec"] = [(500, "error dialing backend")] * 100
    state, message = refused()
    assert state == "unreachable"
    assert message.endswith("answered 500: error dialing backend")


@pytest.mark.parametrize(
    ("say", "state", "told"),
    [
        (lambda session: session.failed(UNKNOWN), "dropped", "the result of a command is lost: pod p, or its node, was restarted"),
        (lambda session: session.errors(b"nodetune: the pod cannot enter the host (x)\n").failed(1), "no privilege", "the pod cannot enter the host (x)"),
        (lambda session: [session.out(b"x" * 60_000) for _ in range(3)], "too much output", "nodetune: too much output: cut off"),
        (lambda session: session.out(b"[" * 2000), "too much output", "nodetune: too much output: cut off"),
    ],
)  # fmt: skip
def test_a_command_without_a_result_says_why(server, say, state, told):
    sessions(server, say)
    assert refused() == (state, told)


@pytest.mark.parametrize(("status", "state"), [(403, "authentication failed"), (404, "unreachable")])
def test_a_pod_that_is_not_there_is_not_waited_for(server, status, state):
    server.refusals["/exec"] = [(status, "no")]
    assert refused()[0] == state
    assert server.refusals["/exec"] == []


# The pod

WANTED = fix_pod.HostPod("gpu1", "nodetune-fix-1", "registry/nodetune-node:1", "nodetune", None, 100.0)


def test_the_pod_may_enter_the_host_and_has_no_token():
    made = fix_pod.manifest(WANTED)
    kubernetes_validate.validate(made, "1.37", strict=True)
    spec = made["spec"]
    assert (spec["hostPID"], spec["hostNetwork"], spec["automountServiceAccountToken"]) == (True, True, False)
    assert spec["activeDeadlineSeconds"] >= 100
    assert spec["containers"][0]["securityContext"]["privileged"]
    assert [each["name"] for each in spec["volumes"]] == ["work"], "the host is entered, not mounted"


def test_a_pod_that_runs_is_used_and_one_that_has_ended_made_again(server):
    fix_pod.shell(WANTED, LIMITS)
    assert server.made == []
    server.refusals["GET .*/nodetune-fix-1$"] = [(200, {"status": {"phase": "Failed"}})]
    fix_pod.shell(WANTED, LIMITS)
    server.refusals["GET .*/nodetune-fix-1$"] = [(404, "not found")]
    server.refusals["POST"] = [(409, "already exists")]
    fix_pod.shell(WANTED, LIMITS)
    assert [each["metadata"]["name"] for each in server.made] == ["nodetune-fix-1"]
    assert "DELETE /api/v1/namespaces/nodetune/pods/nodetune-fix-1" in server.requests


def test_a_play_takes_the_image_of_the_daemon_set_and_removes_its_pods(server):
    containers = [{"name": "reporter", "image": "other"}, {"name": "check", "image": "registry/own:1"}]
    server.refusals["GET .*/nodetune-a$"] = [(200, {"spec": {"containers": containers}})]
    pods = fix_pod.HostPods(Cluster(), 60.0, 300.0)
    found = pods.variables(Target("gpu1", address="nodetune-a", connection="kubernetes"))
    assert (found["nodetune_pod_image"], found["nodetune_pod_node"]) == ("registry/own:1", "gpu1")
    assert found["nodetune_pod_session_seconds"] == 300.0
    pods.close()
    assert server.requests[-1] == f"DELETE /api/v1/namespaces/nodetune/pods/{found['nodetune_pod_name']}"


# The cordon


def test_a_cordon_says_whose_it_is_and_ends_as_it_began(server):
    reached = api.connected(None)
    assert not cordon.is_cordoned(reached, "gpu1")
    assert cordon.cordon(reached, "gpu1", RUN)
    assert cordon.cordon(reached, "gpu1", RUN), "a second time it is still ours"
    assert server.nodes[0]["metadata"]["annotations"] == {cordon.BY: RUN}
    assert cordon.is_cordoned(reached, "gpu1")
    assert cordon.uncordon(reached, "gpu1", RUN)
    assert not cordon.is_cordoned(reached, "gpu1")


def test_the_cordon_of_others_is_kept(server):
    reached = api.connected(None)
    server.nodes[0]["spec"] = {"unschedulable": True}
    assert not cordon.cordon(reached, "gpu1", RUN)
    assert not cordon.uncordon(reached, "gpu1", RUN)
    assert cordon.is_cordoned(reached, "gpu1")


def test_a_node_that_changed_meanwhile_is_looked_at_again(server):
    server.refusals["PATCH"] = [(409, "the object has been modified")] * 2
    assert cordon.cordon(api.connected(None), "gpu1", RUN)


# The eviction


def running(name, kind="ReplicaSet", **metadata):
    owners = [{"kind": kind, "controller": True}] if kind else []
    about = {"name": name, "namespace": "work", "uid": name, "ownerReferences": owners, **metadata}
    return {"metadata": about, "status": {"phase": "Running"}}


def evicted(seconds=60.0, stop=None):
    return cordon.evict(api.connected(None), "gpu1", seconds, stop or threading.Event())


def test_pods_that_belong_to_the_node_stay(server):
    done = {**running("done"), "status": {"phase": "Succeeded"}}
    server.pods = [
        running("a"),
        running("of-each-node", "DaemonSet"),
        running("static", "Node", annotations={cordon.MIRROR: "x"}),
        running("ours", "", labels={"app.kubernetes.io/name": "nodetune"}),
        done,
    ]
    assert evicted() == (1, "")
    assert [each["kind"] for each in server.made] == ["Eviction"]
    assert server.made[0]["deleteOptions"] == {"preconditions": {"uid": "a"}}


def test_a_budget_is_waited_for_and_never_overruled(server):
    server.pods, server.refusals["eviction"] = [running("a")], [(429, "Cannot evict pod")] * 3
    assert evicted() == (1, "")
    server.pods, server.refusals["eviction"] = [running("a")], [(429, "Cannot evict pod")] * 1000
    told = "pods still run here after 0 s: work/a (its PodDisruptionBudget allows no eviction now)"
    assert evicted(0.1) == (0, told)
    assert [each for each in server.requests if each.startswith("DELETE")] == []


def test_a_pod_that_nothing_starts_again_keeps_all_pods(server):
    server.pods = [running("a"), running("alone", "")]
    told = "nothing would start these pods again: work/alone: delete them, or wait for their end"
    assert evicted() == (0, told)
    assert server.made == []


def test_an_eviction_that_is_stopped_ends_soon(server):
    stop = threading.Event()
    stop.set()
    server.pods = [running("a", deletionTimestamp="2026-01-01T00:00:00Z")]
    assert evicted(3600.0, stop) == (0, "pods still run here after 60 min: work/a (it is ending)")


# A run


def connection(**more):
    return ConnectionOptions("gpu1", transport="kubernetes", options=SessionOptions(cluster=Cluster(**more)))


def test_a_run_uncordons_what_it_cordoned_and_records_it(server):
    heard = []
    cordons = kubernetes.Cordons(connection(), "RUN", heard.append)
    server.pods = [running("a")]
    assert cordons.drained(["gpu1"], 60.0) == (["gpu1"], {})
    assert cordons.given_back(["gpu1"]) == {}
    assert cordons.given_back(["gpu1"]) == {"gpu1": "someone else has cordoned or uncordoned it since"}
    assert [(each.task, each.status, each.message, each.changed) for each in heard][:4] == [
        ("Drain", "started", "", False),
        ("Cordon", "ok", "", True),
        ("Evict", "ok", "evicted pods: 1", True),
        ("Uncordon", "started", "", False),
    ]


def test_a_node_that_cannot_be_cordoned_says_why(server):
    server.refusals["PATCH"] = [(403, "nodes is forbidden")]
    cordons = kubernetes.Cordons(connection(), "RUN", lambda _event: None)
    assert cordons.drained(["gpu1"], 60.0) == ([], {"gpu1": "drain: not allowed (403): nodes is forbidden"})


def test_work_is_disturbed_only_on_a_cordoned_node(server):
    told = "Kubernetes may start pods here: kubectl drain gpu1, or --drain kubernetes"
    guard = host_operations.out_of_use(connection(), "gpu1", assume_drained=False)
    assert guard == {"gpu_idle": True, "drained": True, "kubernetes": told}
    server.nodes[0]["spec"] = {"unschedulable": True}
    assert host_operations.out_of_use(connection(), "gpu1", assume_drained=False)["kubernetes"] == ""
    server.refusals["GET /api/v1/nodes/gpu1"] = [(403, "no")]
    told = "unknown whether the node is cordoned: not allowed (403): no"
    assert host_operations.out_of_use(connection(), "gpu1", assume_drained=False)["kubernetes"] == told
    assert "kubernetes" not in host_operations.out_of_use(connection(), "gpu1", assume_drained=True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"drain": "kubernetes", "connection": ConnectionOptions()}, "--drain kubernetes needs --transport kubernetes"),
        ({"verify": True, "connection": connection()}, "--verify measures over SSH or on this machine, not in pods"),
    ],
)
def test_what_a_transport_cannot_do_is_refused(given, told):
    with pytest.raises(RequestError, match=told):
        ApplyRequest(**given)


def test_the_record_of_a_run_knows_the_cluster():
    kept = connection_record(connection(context="prod", image="i"))
    assert {name: kept[name] for name in ("transport", "context", "namespace", "image")} == {
        "transport": "kubernetes",
        "context": "prod",
        "namespace": "nodetune",
        "image": "i",
    }
    assert set(kept) == set(RECORDED)
