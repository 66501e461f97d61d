"""Sources and consumers: a planted fault of each source arrives at each consumer as what it is, or the matrix says why not."""

import csv
import html
import io
import json
import re
import shlex
import tarfile
from xml.etree import ElementTree

import pytest

from nodetune.api import conclusion_json
from nodetune.api.conclusion import SOURCES, Examined
from nodetune.cli import main
from nodetune.foundation import nodeset, paths
from nodetune.foundation.exit_codes import FINDINGS
from nodetune.guard.node import condition
from nodetune.history.closing import folded
from nodetune.history.history import History
from nodetune.provision.readmit import document as readmit_document
from nodetune.provision.readmit.readmission import Readmission, StageOutput
from nodetune.provision.readmit.request import ReadmitRequest
from nodetune.provision.record import StageResult
from nodetune.report.notify import forms, verdicts
from nodetune.report.status import Asked, document, write
from nodetune.report.status.standing import Known, Limits, standing
from nodetune.report.support import gather, page
from nodetune.report.support.request import SupportRequest
from tests.support import documents, sources
from tests.support.matrix import COMMAND, CONSUMERS, DEVICE, EMPTY, FAULT, HOST, PARTLY, SEVERITY, STATEMENT, parts
from tests.support.sources import NOW, PLANTED

ASKED = Asked("prod", every=frozenset({"another", *(host for each in PLANTED.values() for host in each.hosts)}))
LIMITS = Limits(NOW + 3600, fail_on="low")
WIDE = "1000"


def concluded(source):
    return conclusion_json.read(sources.saved(source))


def planted(source):
    (found,) = [each for each in concluded(source).conclusions if each.source == source]
    return found


class Fleet:
    """The history of all documents, and the status by it."""

    def __init__(self, folder):
        self.folder, self.place = folder, str(folder / "fleet.db")
        with History(self.place) as history:
            for source in SOURCES:
                history.conclude(concluded(source))
            self.known = Known(history.open(), history.examined(), history.actions(), history.hosts())
        self.standing = standing(self.known, LIMITS)
        self.document = document.document(self.standing, ASKED)

    def written(self, output_format):
        stream = io.StringIO()
        write(self.standing, ASKED, output_format, stream)
        return stream.getvalue()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", WIDE)
        yield Fleet(tmp_path_factory.mktemp("matrix"))


def row(hosts, text, severity="", command=""):
    """What a consumer says of a fault: its hosts, and the text that has all else."""
    return {HOST: tuple(hosts), SEVERITY: severity or text, COMMAND: command or text} | dict.fromkeys(
        (DEVICE, FAULT, STATEMENT), text
    )


def only(found):
    """The one that was found; None of nothing."""
    assert len(found) < 2, found
    return found[0] if found else None


def notices(source):
    found = concluded(source)
    return verdicts.changes({}, now := verdicts.verdicts(found, "low")), now, forms.clock()


def of_json(source, _fleet):
    body = forms.as_json(*notices(source))["notices"]
    named = [json.dumps(each["checks"]) if each["checks"] else each["verdict"] for each in body]
    return row((each["host"] for each in body), only(sorted(set(named))))


def of_slack(source, _fleet):
    lines = forms.as_slack(*notices(source))["text"].removeprefix("nodetune: ").splitlines()
    told = [re.fullmatch(r"\*(.+)\*: fail: (.*) \(before: pass\)", line) for line in lines]
    return (
        row((each[1] for each in told), told[0][2]) if all(told) else row(re.findall(r"\*(.+)\*", lines[0]), lines[0])
    )


def of_alertmanager(source, _fleet):
    alerts = forms.as_alerts(*notices(source))
    return row((each["labels"]["instance"] for each in alerts), json.dumps(alerts[0]))


def of_otlp(source, _fleet):
    records = forms.as_otlp(*notices(source))["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    told = [{each["key"]: each["value"]["stringValue"] for each in record["attributes"]} for record in records]
    return row((each["host.name"] for each in told), records[0]["body"]["stringValue"])


def of_history(source, fleet):
    with History(fleet.place, make=False) as history:
        (found,) = [each.conclusion for each in history.open() if each.conclusion.source == source]
    assert found == planted(source)
    told = ASKED.command(found.next, found.hosts if found.next.hosts else ())
    return {
        HOST: found.hosts, DEVICE: found.device.name if found.device else "", FAULT: found.fault,
        SEVERITY: found.severity, STATEMENT: found.statement, COMMAND: told,
    }  # fmt: skip


def of_text(source, fleet):
    lines = fleet.written("text").splitlines()
    place = only([number for number, line in enumerate(lines) if f"  {PLANTED[source].fault}  " in line])
    severity, _, hosts, said, _ = re.split(" {2,}", lines[place].strip())
    told = row(nodeset.unfold(hosts.split()[0]), lines[place], severity, lines[place + 1].strip().removeprefix("next "))
    whole = planted(source).statement
    assert len(said) > 60 or said == whole
    return told | {STATEMENT: whole if whole.startswith(said.removesuffix("…")) else said}


def of_status_json(source, fleet):
    entry = only([each for each in fleet.document["open"] if each["source"] == source])
    line = only([each for each in fleet.document["lines"] if each["sources"] == [source]])
    assert line["hosts"] == entry["hosts"]
    assert line["statement"] == entry["statement"]
    return row(line["hosts"], json.dumps([entry, line]), line["severity"], line["next"])


def of_html(source, fleet):
    rows = re.findall(r'<tr><td class="(\w+)">\w+</td>(.*?)</tr>', fleet.written("html"))
    severity, cells = only([each for each in rows if f"<td>{PLANTED[source].fault}</td>" in each[1]])
    _, said, hosts, _ = map(html.unescape, re.findall("<td>(.*?)</td>", cells))
    return {**row(nodeset.unfold(hosts), said, severity), FAULT: PLANTED[source].fault}


def of_csv(source, fleet):
    rows = [each for each in csv.DictReader(io.StringIO(fleet.written("csv"))) if each["source"] == source]
    told = [each for each in rows if each["status"] == "open"]
    return {**told[0], HOST: tuple(each["host"] for each in told), COMMAND: told[0]["next"]} | _for_each(told, "next")


def _for_each(told, name):
    """A command for each host, where both hosts of a path have their own."""
    return {COMMAND: [each[name] for each in told]} if len(told) > 1 else {}


def of_lines(source, fleet):
    rows = [line.split("\t") for line in fleet.written("lines").splitlines()]
    told = [
        each for each in rows if each[2] == PLANTED[source].fault and each[1] in ("critical", "high", "medium", "low")
    ]
    return dict(zip((SEVERITY, FAULT, DEVICE, STATEMENT), told[0][1:], strict=True)) | {
        HOST: tuple(each[0] for each in told)
    }


def of_junit(source, fleet):
    cases = [
        each
        for each in ElementTree.fromstring(fleet.written("junit")).iter("testcase")
        if each.get("classname").endswith(f".{source}")
    ]
    (failure,) = cases[0]
    told = dict(line.partition(": ")[::2] for line in failure.text.splitlines())
    found = {
        **row((each.get("classname").removesuffix(f".{source}") for each in cases), failure.text, failure.get("type")),
        FAULT: cases[0].get("name"), DEVICE: cases[0].get("name"), COMMAND: told["next"],
    }  # fmt: skip
    commands = [{"next": re.search("^next: (.*)$", each[0].text, re.MULTILINE)[1]} for each in cases]
    return found | _for_each(commands, "next")


def of_markdown(source, fleet):
    rows = [line for line in fleet.written("markdown").splitlines() if f"`{PLANTED[source].fault}`" in line]
    severity, _, _, hosts, *_ = only(rows).strip("| ").split(" | ")
    return row(nodeset.unfold(re.search("`(.*)`", hosts)[1]), only(rows), severity)


def of_prometheus(source, fleet):
    lines = [
        line for line in fleet.written("prometheus").splitlines() if f'source="{source}"' in line and "_fault{" in line
    ]
    told = [dict(re.findall(r'(\w+)="(.*?)"', line)) for line in lines]
    return {**told[0], HOST: tuple(each["host"] for each in told)}


def of_nfd(source, fleet):
    items = {
        each["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"]: each["spec"]["labels"]
        for each in json.loads(fleet.written("nfd"))["items"]
    }
    worst = {
        name: next(value for key, value in each.items() if key.endswith("worst-fault")) for name, each in items.items()
    }
    hosts = tuple(host for host in PLANTED[source].hosts if host in worst)
    return {HOST: hosts, SEVERITY: worst[hosts[0]]}


def of_agents(source, fleet):
    tools = pytest.importorskip("mcp") and __import__("nodetune.cli.agent_tools", fromlist=["Sources"])
    line = only([each for each in tools._short(fleet.document, "low", 50)["lines"] if each["sources"] == [source]])
    return row(nodeset.unfold(line["hosts"]), json.dumps(line), line["severity"], line["next"])


def of_exit_code(source, _fleet):
    found = concluded(source)
    seen = [(each.source, each.host, each.at, each.unjudged) for each in found.examinations]
    known = Known(folded([found]).open, seen)
    failing = [
        each
        for each in ("low", "medium", "high", "critical")
        if standing(known, Limits(NOW, fail_on=each)).code == FINDINGS
    ]
    return {SEVERITY: failing[-1]}


def of_evidence(source, fleet):
    if (source, "readmit's evidence") in EMPTY:
        return None
    found, host = Readmission(PLANTED[source].hosts[0]), PLANTED[source].hosts[0]
    found.add(source, StageOutput(StageResult(), concluded=concluded(source)))
    place = fleet.folder / f"{source}.tar.gz"
    readmit_document.keep(found, ReadmitRequest(host=host, evidence=place), place)
    with tarfile.open(place) as archive:
        (name,) = [each for each in archive.getnames() if each.endswith("conclusions.json")]
        told = archive.extractfile(name).read().decode()
    return of_members(documents.valid("conclusion", told)["conclusions"], source)


def of_members(told, source):
    each = only([each for each in told if each["source"] == source])
    if each is None:
        return None
    (kept,) = conclusion_json.read(
        {"conclusions": [{key: value for key, value in each.items() if key != "since"}]}
    ).conclusions
    command = ASKED.command(kept.next, kept.hosts if kept.next.hosts else ())
    return row(
        kept.hosts,
        json.dumps([kept.fault, kept.statement, kept.device.name if kept.device else ""]),
        kept.severity,
        command,
    )


def of_bundle(source, fleet):
    host = PLANTED[source].hosts[0]
    data = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
    facts = fleet.folder / f"{host}.json"
    facts.write_text(json.dumps({**data, "host": host}))
    asked = SupportRequest(host=host, facts_path=facts, history=fleet.place, runs_folder=fleet.folder / "runs")
    known = gather.gather(asked, None)
    return of_members(json.loads(gather.files(known, page.page(known), host)["history.json"])["open"], source)


def of_condition(source, _fleet):
    if source != "guard":
        return None
    (node,) = sources.saved("guard")["nodes"]
    check, _, seen = node["guard"]["last_reason"].partition(": ")
    recent = condition.RecentChecks([condition.ALL])
    for _ in range(condition.LOOKS):
        recent.add(condition.look({"verdict": "fail", "findings": [{"check": check, "observed": seen}]}))
    told = recent.condition()
    assert (told.status, told.checks) == ("True", (check,))
    assert told.message in planted(source).statement
    return {HOST: (node["name"],), STATEMENT: planted(source).statement}


ARRIVES = dict(
    zip(
        (each.name for each in CONSUMERS),
        (
            of_json, of_slack, of_alertmanager, of_otlp, of_history, of_text, of_status_json, of_html, of_csv, of_lines, of_junit,
            of_markdown, of_prometheus, of_nfd, of_agents, of_exit_code, of_evidence, of_bundle, of_condition,
        ),
        strict=True,
    )
)  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_still_concludes_what_its_document_says(source):
    made, saved = sources.made(source), sources.saved(source)
    for each in (*made["examined"], *saved["examined"]):
        each.pop("edition")
    assert made["schema"] == saved["schema"]
    assert made["conclusions"] == saved["conclusions"]
    assert made["examined"] == saved["examined"]


@pytest.mark.parametrize("source", SOURCES)
def test_a_document_keeps_to_its_schema_and_its_conclusions_to_theirs(source):
    told = sources.saved(source)
    documents.valid_by_its_own_word(json.dumps(told))
    documents.valid("conclusion", json.dumps({name: told[name] for name in ("conclusions", "examined")}))


@pytest.mark.parametrize("source", SOURCES)
def test_a_document_has_the_planted_fault_and_no_other(source):
    (found,) = concluded(source).conclusions
    wanted = PLANTED[source]
    assert (found.source, found.fault, found.hosts, found.severity) == (
        source,
        wanted.fault,
        wanted.hosts,
        wanted.severity,
    )
    assert (found.device.name if found.device else "") == wanted.device


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda each: each.name)
@pytest.mark.parametrize("source", SOURCES)
def test_a_planted_fault_arrives_as_what_it_is_or_the_matrix_says_why_not(source, consumer, fleet, monkeypatch):
    monkeypatch.setenv("COLUMNS", WIDE)
    found, wanted = ARRIVES[consumer.name](source, fleet), PLANTED[source]
    arriving = parts(source, consumer)
    assert (found is None) == (not arriving)
    said = {FAULT: wanted.fault, SEVERITY: wanted.severity, DEVICE: wanted.device, STATEMENT: planted(source).statement}
    for part in arriving:
        if part == HOST:
            assert found[HOST] == wanted.hosts
        elif part == COMMAND:
            assert_command(found[COMMAND], wanted)
        else:
            assert plain(said[part]) in plain(found[part]), part


def plain(text):
    """Without the signs by which formats quote."""
    return text.replace("\\", "").replace("`", "")


def assert_command(found, wanted):
    """The whole command; for each host its own where a row is a host."""
    if isinstance(found, list):
        whole = shlex.split(wanted.command)
        own = [[host if nodeset.fold(wanted.hosts) == word else word for word in whole] for host in wanted.hosts]
        assert [shlex.split(each) for each in found] == own
    else:
        assert plain(wanted.command) in plain(html.unescape(found))


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_notice_has_no_value(source, form):
    body = json.dumps(forms.FORMS[form](*notices(source)), ensure_ascii=False)
    found = planted(source)
    values = [
        found.statement,
        *found.evidence,
        *(str(each) for each in (found.observed, found.wanted) if isinstance(each, float | dict)),
    ]
    assert not [value for value in values if value in body]


NOTIFYING = {
    "audit": ("reach", "audit"), "verify": ("verify", "find-slow"), "slow": ("late-ranks", "ras"), "watch": ("watch",),
    "history": ("trend", "episodes"), "guard status": ("guard",), "readmit": ("readmit",),
}  # fmt: skip
"""Command → the sources of which it sends notices."""


def test_each_source_has_a_command_that_sends_its_notices():
    assert {source for each in NOTIFYING.values() for source in each} == set(SOURCES)
    for words in map(str.split, NOTIFYING):
        command = main.group
        for word in words:
            command = command.get_command(None, word)
        assert "--notify" in {opt for each in command.params for opt in each.opts}, words


def test_the_matrix_explains_only_cells_that_are_there():
    names = {each.name for each in CONSUMERS}
    assert {name for cells in (EMPTY, PARTLY) for _, name in cells} <= names
    assert {source for cells in (EMPTY, PARTLY) for source, _ in cells} <= set(SOURCES)
    assert all(EMPTY.values())
    assert all(each.why for each in CONSUMERS if len(each.parts) < 6)
    assert set(PLANTED) == set(SOURCES) == set(sources.MAKERS)


def test_the_whole_fleet_is_one_status_without_a_document_too_many(fleet):
    assert sum(fleet.standing.open.values()) == len(SOURCES)
    assert isinstance(sum((concluded(each) for each in SOURCES), Examined()), Examined)
