"""Notices of changed verdicts: what is sent, when, and that no receiver harms an audit."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jsonschema
import pytest

from nodetune.api import conclusion_json
from nodetune.api.conclusion import Conclusion, Examination, Examined, Judged
from nodetune.api.device import Device
from nodetune.api.model import Finding, HostResult
from nodetune.audit.conclude import concluded
from nodetune.foundation import schemas
from nodetune.foundation.request import RequestError
from nodetune.history.history import History
from nodetune.report.notify import forms, receiver, verdicts
from nodetune.report.notify.receiver import NotSentError, Receiver
from nodetune.report.notify.verdicts import HostVerdict, Notice
from tests.support import sources
from tests.support.commandline import nodetune as run

SECRET = "T0KEN-of-the-site"
BAD = HostVerdict("fail", (("gpu-lost", "critical"), ("swap-used", "medium")))
FACTS = ("audit", "--facts", "h200-x4", "--site", "none", "-s", "clock-unsynchronized")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, dict(self.headers), json.loads(body)))
        answer = self.server.answers.pop(0) if self.server.answers else 200
        if answer == "drop":
            self.connection.close()
        elif answer == "stall":
            self.server.ended.wait(60)
        elif answer == "drip":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.server.ended.wait(0.01):
                self.wfile.write(b"X: y\r\n")
        else:
            self.send_response(answer)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def serving(*answers):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads, server.handle_error = True, lambda *_: None
        server.taken, server.answers, server.ended = [], list(answers), threading.Event()
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.ended.set()
        server.shutdown()


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """Tries follow each other without a pause, and nothing was sent before."""
    monkeypatch.setattr(receiver, "WAIT_SECONDS", 0.0)
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "runs"))


def found(check, severity="high", status="fail", **more):
    return Finding(check, status, severity, observed=SECRET, **more)


def result(*findings, host="n1", state="ok"):
    return HostResult(host, state, SECRET, findings=findings)


def test_only_what_counts_makes_a_verdict():
    results = [
        result(found("a", "low"), found("b", "critical"), found("c", "medium"), found("d", part_of="b"), host="n1"),
        result(found("a", "low"), host="n2"),
        result(found("a", status="unknown"), host="n3"),
        result(host="n4", state="unreachable"),
        result(host="n5", state="interrupted"),
    ]
    seen = concluded(results)
    assert verdicts.verdicts(seen, "medium") == {
        "n1": HostVerdict("fail", (("b", "critical"), ("c", "medium"))),
        "n2": HostVerdict(),
        "n3": HostVerdict("unknown", (("a", "high"),)),
        "n4": HostVerdict("not reached"),
    }
    assert verdicts.verdicts(seen, "never") == verdicts.verdicts(seen, "medium")
    assert verdicts.verdicts(seen, "critical")["n1"].checks == (("b", "critical"),)


def test_a_host_of_which_nothing_was_judged_keeps_its_verdict():
    reached = Examination("reach", "n1", 1, "0.3.0", (Judged("host-not-reached"),))
    undecided = Examination("find-slow", "n1", 1, "0.3.0", (), {"node-slow": "no run of the hosts as one"})
    good = Examination("find-slow", "n1", 1, "0.3.0", (Judged("node-slow"),))
    assert verdicts.verdicts(Examined((), (reached, undecided)), "medium") == {}
    assert verdicts.verdicts(Examined((), (reached, good)), "medium") == {"n1": HostVerdict()}


def test_a_change_is_told_once_and_a_new_host_only_if_it_fails():
    now = {"n1": BAD, "n2": HostVerdict(), "n3": BAD}
    assert verdicts.changes({"n3": BAD}, now) == [Notice("n1", BAD, HostVerdict())]
    assert verdicts.changes(now, now) == []
    assert verdicts.changes(now, {"n1": HostVerdict()}) == [Notice("n1", HostVerdict(), BAD)]


@pytest.mark.parametrize("content", ["", "[]", '{"schema": "nodetune.notified/1", "hosts": {"n1": 7, "n2": {}}}', "\0"])
def test_what_others_wrote_in_place_of_the_record_is_nothing(content, tmp_path):
    with serving() as server:
        run(*FACTS, "--notify", server.url)
        (path,) = (tmp_path / "runs").glob("notified-*")
        path.write_text(content)
        run(*FACTS, "--notify", server.url)
    assert len(server.taken) == 2


def test_what_is_known_survives_being_written():
    known = {"n1": BAD, "n2": HostVerdict("not reached")}
    assert verdicts.from_data(json.loads(json.dumps(verdicts.to_data(known)))) == known


NOTICES = [Notice("n1", BAD, HostVerdict()), Notice("n<2>", HostVerdict(), BAD)]
NOW = {"n1": BAD, "n<2>": HostVerdict(), "n3": BAD}


def test_the_json_keeps_to_its_schema():
    body = forms.as_json(NOTICES, NOW, forms.clock())
    jsonschema.validate(body, json.loads(schemas.text("notice")))
    assert [each["verdict"] for each in body["notices"]] == ["fail", "pass"]
    assert forms.as_json([], NOW, forms.clock()) is None


def test_a_notice_names_the_devices_and_both_hosts_of_a_path():
    gpu = Conclusion("gpu-slow", "find-slow", ("n1",), "high", SECRET, 1, Device("GPU3"), observed=SECRET)
    path = Conclusion("path-slow", "find-slow", ("n1", "n2"), "high", SECRET, 1, Device("path n1 - n2"))
    now = verdicts.verdicts(Examined((gpu, path)), "medium")
    body = forms.as_json(verdicts.changes({}, now), now, forms.clock())
    jsonschema.validate(body, json.loads(schemas.text("notice")))
    of_n1, of_n2 = ({each["check"]: each["devices"] for each in notice["checks"]} for notice in body["notices"])
    assert (of_n1, of_n2) == ({"gpu-slow": ["GPU3"], "path-slow": ["path n1 - n2"]}, {"path-slow": ["path n1 - n2"]})
    assert SECRET not in json.dumps(body)


def test_slack_gets_few_lines_without_markup_of_hosts():
    assert forms.as_slack(NOTICES, NOW, forms.clock()) == {
        "text": "nodetune: *n1*: fail: gpu-lost (critical), swap-used (medium) (before: pass)\n*n&lt;2&gt;*: pass (before: fail)"
    }
    many = forms.as_slack([Notice(f"n{number}", BAD, HostVerdict()) for number in range(1000)], {}, forms.clock())
    assert many["text"].endswith("and 970 more hosts")


def test_alertmanager_gets_all_that_stands_and_the_end_of_the_rest():
    at = forms.clock()
    alerts = forms.as_alerts(NOTICES, NOW, at)
    stands = {(each["labels"]["instance"], each["labels"]["check"]): each["endsAt"] > at.isoformat() for each in alerts}
    assert stands == {(host, check): host != "n<2>" for host in ("n1", "n<2>", "n3") for check, _ in BAD.checks}
    assert forms.as_alerts([], {"n1": HostVerdict()}, at) is None


def test_opentelemetry_reads_one_record_for_each_host():
    proto = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    from google.protobuf import json_format

    body = forms.as_otlp([*NOTICES, Notice("n3", HostVerdict("not reached"), BAD)], NOW, forms.clock())
    read = json_format.Parse(json.dumps(body), proto.ExportLogsServiceRequest())
    (logs,) = read.resource_logs
    (scope,) = logs.scope_logs
    told = [{each.key: each.value.string_value for each in record.attributes} for record in scope.log_records]
    assert [each["host.name"] for each in told] == ["n1", "n<2>", "n3"]
    assert [each["nodetune.verdict"] for each in told] == ["fail", "pass", "not reached"]
    assert [each["nodetune.before"] for each in told] == ["pass", "fail", "fail"]
    assert told[0]["nodetune.checks"] == "gpu-lost, swap-used"
    assert [record.severity_number for record in scope.log_records] == [17, 9, 13]
    assert {record.event_name for record in scope.log_records} == {"nodetune.verdict"}
    assert {each.key for each in logs.resource.attributes} == {"service.name", "service.version"}
    assert scope.log_records[0].time_unix_nano > 1 << 60
    assert forms.as_otlp([], NOW, forms.clock()) is None


def test_a_collector_of_opentelemetry_gets_a_log_at_its_path():
    with serving() as server:
        run(*FACTS, "--notify", server.url)
        done = run(*FACTS, "--notify", f"otlp+{server.url}")
    (_, _, notice), (path, head, body) = server.taken
    assert (done.stderr, path, head["Content-Type"]) == ("", "/v1/logs", "application/json")
    (record,) = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    told = {each["key"]: each["value"]["stringValue"] for each in record["attributes"]}
    assert told["nodetune.verdict"] == notice["notices"][0]["verdict"]
    assert record["severityText"] in ("WARN", "ERROR")


def test_a_history_tells_its_trends_and_what_often_breaks_once(tmp_path):
    place = str(tmp_path / "fleet.db")
    with History(place) as history:
        for source in ("trend", "episodes", "audit"):
            history.conclude(conclusion_json.read(sources.saved(source)))
    with serving() as server:
        codes = [run("history", "--history", place, "--notify", server.url).returncode for _ in range(2)]
    ((_, _, body),) = server.taken
    assert codes == [0, 0], "no day was judged"
    told = {each["host"]: [check["check"] for check in each["checks"]] for each in body["notices"]}
    assert told == {"gpu08": ["part-degrading"], "gpu09": ["fault-survives-reboots"]}


def test_one_audit_after_the_other_sends_a_verdict_once():
    with serving() as server:
        codes = [run(*FACTS, "--notify", server.url).returncode for _ in range(3)]
    ((path, head, body),) = server.taken
    assert codes == [run(*FACTS).returncode] * 3
    assert (path, head["Content-Type"]) == ("/", "application/json")
    assert body["notices"][0]["checks"]
    with serving() as other:
        run(*FACTS, "--notify", other.url)
        run(*FACTS, "--notify", other.url, "-s", "memory")
    assert len(other.taken) == 2, "each receiver and each selection has its own record"


def test_what_failed_is_tried_again_and_then_with_the_next_audit():
    with serving(503, "drop", 429, 500, 200) as server:
        first = run(*FACTS, "--notify", server.url)
        assert "127.0.0.1" in first.stderr
        assert "(3 tries)" in first.stderr
        second = run(*FACTS, "--notify", server.url)
    assert second.stderr == ""
    assert first.returncode == second.returncode == run(*FACTS).returncode
    keys = [head["Idempotency-Key"] for _, head, _ in server.taken]
    assert len(keys) == 5
    assert (len(set(keys[:3])), len(set(keys[3:]))) == (1, 1), "tries of one notice can be told from two notices"


@pytest.mark.parametrize("answer", [400, 404, 302])
def test_a_refusal_or_a_redirect_ends_it_at_once(answer):
    with serving(answer) as server:
        done = run(*FACTS, "--notify", server.url)
    assert f"it answers {answer}" in done.stderr
    assert len(server.taken) == 1


@pytest.mark.parametrize("answer", ["stall", "drip"])
def test_a_receiver_that_stalls_holds_no_audit(answer, monkeypatch):
    monkeypatch.setattr(receiver, "STEP_SECONDS", 60.0 if answer == "drip" else 0.05)
    monkeypatch.setattr(receiver, "MAX_SECONDS", 0.3 if answer == "drip" else 60.0)
    with serving(*[answer] * 3) as server:
        done = run(*FACTS, "--notify", server.url)
    assert "was not notified" in done.stderr
    assert done.returncode == run(*FACTS).returncode


def test_nobody_who_listens_is_one_line():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and never listens
        port = held.getsockname()[1]
        done = run(*FACTS, "--notify", f"http://user:{SECRET}@127.0.0.1:{port}/{SECRET}?{SECRET}")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"127.0.0.1:{port} was not notified: Connection refused (3 tries)")
    assert SECRET not in done.stdout + done.stderr


def test_a_notice_holds_no_secret(tmp_path):
    seen = result(found("gpu-lost", "critical"))
    now = verdicts.verdicts(concluded([seen, result(host="n2", state="unreachable")]), "medium")
    for form in forms.FORMS.values():
        assert SECRET not in json.dumps(form(verdicts.changes({}, now), now, forms.clock()))
    with serving() as server:
        run(*FACTS, "--notify", server.url.replace("//", f"//user:{SECRET}@") + f"/{SECRET}")
    ((path, head, body),) = server.taken
    assert path == f"/{SECRET}"
    assert head["Authorization"].startswith("Basic ")
    assert SECRET not in json.dumps(body)
    (record,) = (tmp_path / "runs").glob("notified-*")
    assert SECRET not in record.name + record.read_text()


def test_a_record_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "runs").touch()
    with serving() as server:
        done = run(*FACTS, "--notify", server.url)
    (line,) = done.stderr.splitlines()
    assert "may get the same notices again" in line
    assert done.returncode == run(*FACTS).returncode


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "x", "teams+https://x/y", "https://x:port/", "http://a b/", "http://[x/", "http://é/"]
)
def test_a_url_that_no_receiver_has_is_refused_before_the_audit(url):
    done = run(*FACTS, "--notify", url)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "alertmanager+http://" in line


def test_the_path_of_alertmanager_is_added():
    parsed = [Receiver.parse(f"alertmanager+http://x{path}").url for path in ("", "/", "/am/", "/api/v2/alerts")]
    assert parsed == ["http://x/api/v2/alerts"] * 2 + ["http://x/am/api/v2/alerts", "http://x/api/v2/alerts"]
    assert [Receiver.parse(f"otlp+http://x{path}").url for path in ("", "/v1/logs")] == ["http://x/v1/logs"] * 2


def test_a_receiver_raises_what_it_says():
    with serving(404) as server, pytest.raises(NotSentError, match="404"):
        Receiver("", server.url).send({})
    with pytest.raises(RequestError):
        Receiver.parse("")


@pytest.mark.parametrize("proxy", ["http://ops:hun/ter2@proxy:3128", "http:/ops:hunter2@proxy"])
def test_a_proxy_that_is_no_address_is_told_without_its_password(monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(NotSentError) as told:
        Receiver.parse("http://receiver.example/x").send({})
    assert "hun" not in str(told.value)
