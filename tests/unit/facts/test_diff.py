"""What differs between facts, and between audits: told once, and only what is known."""

import json

import pytest

from nodetune.audit import compare as audits
from nodetune.audit.compare import DocumentError
from nodetune.facts import compare as facts
from nodetune.facts import document
from nodetune.facts.compare import Side
from nodetune.facts.diff import folded
from tests.support import documents
from tests.support.commandline import nodetune


def host(facts, name="a"):
    return document.from_data({"host": name, "facts": facts})


def changes(before, after, every=False):
    return [
        (each.kind, each.what, each.subject, each.before, each.after)
        for each in facts.compare(Side({"a": host(before)}), Side({"a": host(after)}), every).changes
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"value": 1}, {"value": 2}, ("changed", "f.x", "", "1", "2")),
        ({"value": 0}, {"absent": "none"}, ("gone", "f.x", "", "0", "absent")),
        ({"absent": "none"}, {"value": 0}, ("added", "f.x", "", "absent", "0")),
        ({"value": 1}, {"unread": "why"}, ("unread", "f.x", "", "1", "unread (why)")),
        ({"absent": "none"}, {"unread": "why"}, ("unread", "f.x", "", "absent", "unread (why)")),
        ({"value": {"a": {"b": 1}}}, {"value": {"a": {"b": 2}}}, ("changed", "f.x.a.b", "", "1", "2")),
        ({"value": {"a": 1}}, {"value": {}}, ("gone", "f.x.a", "", "1", "")),
        ({"value": {"a": None}}, {"value": {"a": 1}}, ("changed", "f.x.a", "", "none", "1")),
        ({"value": ["a", "b"]}, {"value": ["b", "c"]}, ("changed", "f.x", "", "a", "c")),
        ({"value": ["a"]}, {"value": ["a", "b"]}, ("added", "f.x", "", "", "b")),
        ({"value": [1, 2]}, {"value": [2, 1]}, ("changed", "f.x", "", "1 2", "2 1")),
        ({"each": {"G0": {"value": 1}}}, {"each": {"G0": {"value": 2}}}, ("changed", "f.x", "G0", "1", "2")),
        ({"each": {"G0": {"value": 1}}}, {"each": {}}, ("gone", "f.x", "G0", "1", "absent")),
        ({"each": {"G0": {"value": 1}}}, {"unread": "why"}, ("unread", "f.x", "", "G0: 1", "unread (why)")),
        (
            {"value": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]},
            {"value": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]},
            ("changed", "f.x.B.value", "", "1", "2"),
        ),
    ],
)
def test_a_difference_is_told_for_what_it_is(before, after, told):
    assert changes({"f.x": before}, {"f.x": after}) == [told]


@pytest.mark.parametrize("fact", [{"value": 0}, {"absent": "why"}, {"unread": "why"}, {"each": {"G0": {"value": 1}}}])
def test_what_is_the_same_is_no_difference(fact):
    assert not changes({"f.x": fact}, {"f.x": fact})


def test_another_reason_for_knowing_nothing_is_no_difference():
    assert not changes(
        {"f.x": {"unread": "a"}, "f.y": {"absent": "a"}}, {"f.x": {"unread": "b"}, "f.y": {"absent": "b"}}
    )


def test_what_was_not_collected_is_not_gone():
    ((kind, _, _, _, after),) = changes({"f.x": {"value": 1}}, {})
    assert (kind, after) == ("unread", "unread (not collected)")


def of_a_gpu(value):
    return {"each": {"GPU0": {"value": value}}}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("host.uptime_s", {"value": 1}, {"value": 2}),
        ("memory.free_kb", {"value": 1}, {"value": 2}),
        ("tcp.segments", {"value": {"sent": 1, "retransmitted": 0}}, {"value": {"sent": 2, "retransmitted": 0}}),
        ("services.processes", {"value": {"tuned": 1}}, {"value": {"tuned": 2}}),
        ("gpu.temperature", of_a_gpu(40), of_a_gpu(41)),
        ("gpu.power_usage", of_a_gpu(100), of_a_gpu(101)),
    ],
)
def test_readings_are_only_counted_unless_they_are_wanted(name, before, after):
    assert not changes({name: before}, {name: after})
    assert changes({name: before}, {name: after}, every=True)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("host.kernel", {"value": "6.8"}, {"value": "6.9"}),
        ("sysctl.vm.swappiness", {"value": 1}, {"value": 2}),
        ("gpu.vbios_version", of_a_gpu("96.00"), of_a_gpu("96.01")),
        ("gpu.power_management_limit", of_a_gpu(600), of_a_gpu(700)),
    ],
)
def test_settings_and_versions_are_no_readings(name, before, after):
    assert changes({name: before}, {name: after})


def test_a_field_of_a_record_can_be_a_reading():
    before, after = ({"services.x": {"value": {"pid": each, "active": "active"}}} for each in (1, 2))
    assert not changes(before, after)


def test_serial_numbers_count_on_one_host_and_not_between_two():
    before, after = ({"gpu.serial": of_a_gpu(each)} for each in ("1", "2"))
    assert changes(before, after)
    assert not facts.compare(Side({"a": host(before)}), Side({"b": host(after, "b")})).changes


def test_folders_are_compared_host_by_host_and_folded():
    one, two = {"f.x": {"value": 1}}, {"f.x": {"value": 2}}
    before, after = {name: host(one, name) for name in "abc"}, {name: host(two, name) for name in "bcd"}
    found = facts.compare(Side(before), Side(after))
    assert (found.lost, found.added, found.compared) == (("a",), ("d",), 2)
    ((_, hosts, _),) = folded(found.changes)
    assert hosts == ["b", "c"]


def test_a_reboot_in_between_is_told():
    before, after = ({"host.boot_id": {"value": each}} for each in ("1", "2"))
    assert facts.compare(Side({"a": host(before)}), Side({"a": host(after)})).rebooted == ("a",)


def finding(check, status="fail", observed="1", **more):
    texts = {"check": check, "status": status, "severity": "high", "title": "T", "observed": observed, "wanted": "0"}
    return {**texts, "reason": "", "subjects": {}, **more}


def audit(**hosts):
    return {"hosts": [{"name": name, "state": "ok", "findings": found} for name, found in hosts.items()]}


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (finding("x", "pass"), finding("x"), "new"),
        (finding("x"), finding("x", "pass"), "gone"),
        (finding("x"), finding("x", "waived"), "waived"),
        (finding("x", "waived"), finding("x"), "new"),
        (finding("x", "waived"), finding("x", "pass"), None),
        (finding("x"), finding("x", observed="2"), "changed"),
        (finding("x"), finding("x", severity="low"), "changed"),
        (finding("x"), finding("x", "unknown"), "unread"),
        (finding("x", "pass"), finding("x", "unknown"), "unread"),
        (finding("x", "unknown"), finding("x"), "new"),
        (finding("x"), finding("y", "pass"), "unread"),
        (finding("x", "pass"), finding("x", "skip"), None),
        (finding("x", "pass", "1"), finding("x", "pass", "2"), None),
        (finding("x"), finding("x"), None),
    ],
)
def test_what_became_of_a_finding(before, after, kind):
    assert [each.kind for each in audits.compare(audit(a=[before]), audit(a=[after])).changes] == (
        [kind] if kind else []
    )


def test_a_finding_of_a_new_check_is_new():
    (change,) = audits.compare(audit(a=[]), audit(a=[finding("x")])).changes
    assert (change.kind, change.before) == ("new", "not judged")


def test_a_finding_that_the_site_file_switches_off_is_off():
    (before,), (after,) = audit(a=[finding("x"), finding("y")])["hosts"], audit(a=[])["hosts"]
    off = {"hosts": [{**after, "off": ["x"]}]}
    told = [(each.what, each.kind, each.after) for each in audits.compare({"hosts": [before]}, off).changes]
    assert told == [("x", "off", "switched off by the site file"), ("y", "unread", "not judged")]
    told = [(each.what, each.kind, each.before) for each in audits.compare(off, {"hosts": [before]}).changes]
    assert told == [("x", "new", "switched off by the site file"), ("y", "new", "not judged")]


def test_an_unreached_host_has_a_state_and_no_fixed_findings():
    after = audit(a=[])
    after["hosts"][0]["state"] = "refused"
    found = audits.compare(audit(a=[finding("x")]), after)
    assert found.states == {"a": ("ok", "refused")}
    assert not found.changes
    assert found


def nights(*hosts):
    """An audit of a night: name=state."""
    return {"schema": "nodetune.audit/1", "hosts": [{"name": n, "state": s, "findings": []} for n, s in hosts]}


@pytest.mark.parametrize(
    ("reached", "first"), [(2, "2 hosts compared; no findings"), (0, "nothing to compare: no host")]
)
def test_hosts_down_on_both_nights_are_not_no_change(files, reached, first):
    states = [(f"g{each}", "ok" if each < reached else "unreachable") for each in range(9)]
    one, two = files("a.json", nights(*states)), files("b.json", nights(*states))
    done = nodetune("diff", one, two)
    assert done.returncode == 3
    assert f"not reached: {'g[2-8]' if reached else '9 hosts  g[0-8]'} (unreachable)" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(first)
    assert done.stdout.splitlines()[-1].endswith(f"; {9 - reached} hosts not compared")
    told = documents.valid("diff", nodetune("diff", one, two, "--format", "json").stdout)
    assert (told["compared"], told["same"], len(told["states"])) == (reached, False, 9 - reached)


def test_a_host_reached_again_is_named_and_not_compared(files):
    one, two = files("a.json", nights(("g1", "unreachable"))), files("b.json", nights(("g1", "ok")))
    done = nodetune("diff", one, two)
    assert done.returncode == 3
    assert "reached again: g1 (unreachable)" in done.stdout


def test_a_bundled_machine_is_compared_by_its_name(files):
    done = nodetune("diff", "h100-x2", "h200-x4")
    assert done.returncode == 1
    assert "H100" in done.stdout
    done = nodetune("diff", "h100-x2", "h100-x3")
    assert done.returncode == 2
    assert "no such file or folder: h100-x3 (bundled machines: h100-x2, h200-x4)" in done.stderr


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"hosts": 5},
        {"hosts": [{}]},
        {"hosts": [{"name": "a", "state": "ok", "findings": ["x"]}]},
        {"hosts": [{"name": "a", "state": "ok", "findings": [{"check": "x"}]}]},
        {"hosts": [{"name": "a", "state": "ok", "findings": [finding("x", severity="awful")]}]},
        {"hosts": [{"name": 5, "state": "ok", "findings": []}]},
        [],
        "x",
    ],
)
def test_a_document_that_is_none_is_one_clear_error(data):
    with pytest.raises(DocumentError, match=r"a\.json"):
        audits.checked(data, "a.json")


@pytest.fixture
def files(tmp_path):
    def write(name, data):
        (tmp_path / name).write_text(json.dumps(data))
        return tmp_path / name

    return write


def facts_file(name, value):
    return {"schema": "nodetune.facts/1", "host": name, "facts": {"gpu.driver_version": {"value": value}}}


def test_the_exit_code_says_whether_anything_differs(files):
    one, two = files("a.json", facts_file("a", "1")), files("b.json", facts_file("b", "2"))
    same, different = nodetune("diff", one, one), nodetune("diff", one, two)
    assert (same.returncode, different.returncode) == (0, 1)
    assert "no differences" in same.stdout
    assert "driver_version  1 → 2" in different.stdout


def test_two_kinds_of_file_are_a_slip(files):
    one = files("a.json", facts_file("a", "1"))
    other = files("b.json", {"schema": "nodetune.audit/1", **audit(a=[])})
    for given in ((one, other), (other, other, "--all")):
        done = nodetune("diff", *given)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "x"}', '{"hosts": []}', '{"schema": "nodetune.audit/1"}'])
def test_a_file_that_is_neither_is_one_line(files, tmp_path, text):
    (tmp_path / "bad.json").write_text(text)
    done = nodetune("diff", tmp_path / "bad.json", tmp_path / "bad.json")
    assert done.returncode == 2
    assert "bad.json" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_documents_keep_to_their_schema(files):
    facts = files("a.json", facts_file("a", "1")), files("b.json", facts_file("b", "2"))
    audits = [
        files(name, {"schema": "nodetune.audit/1", **audit(a=[each])})
        for name, each in (("c.json", finding("x")), ("d.json", finding("y")))
    ]
    for pair, of in ((facts, "facts"), (audits, "audits")):
        told = documents.valid("diff", nodetune("diff", *pair, "--format", "json").stdout)
        assert told["of"] == of
        assert not told["same"]


def test_an_audit_of_a_fleet_is_compared_by_host_and_finding(files):
    fixed = finding("x", "pass")
    before = {"schema": "nodetune.audit/1", **audit(g1=[finding("x")], g2=[finding("x")], g3=[], lost=[])}
    after = {"schema": "nodetune.audit/1", **audit(g1=[fixed], g2=[fixed], g3=[finding("y")], more=[])}
    shown = nodetune("diff", files("a.json", before), files("b.json", after)).stdout
    assert "1 host lost: lost" in shown
    assert "1 host added: more" in shown
    assert "gone     high      x  g[1-2]" in shown
    assert "new      high      y  g3" in shown


def test_hostile_words_reach_no_terminal(files):
    nasty = "\x1b[2J\u202ex"
    one = files("a.json", {"host": nasty, "facts": {"f." + nasty: {"value": nasty}}})
    two = files("b.json", {"host": "b", "facts": {"f." + nasty: {"value": {nasty: nasty}}}})
    audits = [
        files(name, {"schema": "nodetune.audit/1", **audit(**{nasty: [finding(nasty, observed=each, title=nasty)]})})
        for name, each in (("c.json", nasty), ("d.json", nasty + "2"))
    ]
    for pair in ((one, two), audits):
        done = nodetune("diff", *pair)
        assert done.returncode == 1
        assert not set(done.stdout) & set("\x1b\u202e")
