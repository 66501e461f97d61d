"""The report of many hosts: short, worst first, its host lists countable and fit to be copied; and why hosts failed."""

import io
import json
import re

import pytest

from nodetune.api.model import Fix
from nodetune.foundation import nodeset
from nodetune.hosts.target import Target
from nodetune.remediation import plan
from nodetune.remote.login import host_keys, openssh
from nodetune.report.text import explained, host_names, lines
from nodetune.report.text import plan as text_plan
from tests.unit.cli.test_cli import nodetune
from tests.unit.report.test_report import finding, printed, result

ODD = [f"gpu{number:03}" for number in range(1, 600, 2)]
"""Names that do not fold."""

FULL = [
    f"rack{rack}-gpu{number}.example.com"
    for rack in range(30)
    for number in range(20)
    if (rack + number * number) % 7 % 3
]
"""Numbers in two places, and a domain behind them."""


def refused(hosts, message):
    return [result(host, state="refused", message=message.format(host)) for host in hosts]


# --- why hosts failed


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("me", "sudo asks for a password: give it with --ask-become-pass"),
        ("deep", "bad/deep.json: JSON nested too deeply"),
        ("port", "port port 22 refused the connection: is sshd running there on this port (ansible_port)?"),
        ("a", "bad/a.json: not a file"),
    ],
)
def test_what_a_single_host_says_stays_as_it_is(host, message):
    shown = printed([result(host, state="refused", message=message), result("other")], width=150)
    assert f"refused  {host}: {message}\n" in shown


def test_a_name_is_left_out_as_a_whole_word_only():
    messages = "{0}: {0} port 22: see /etc/{0}/x, --{0}, a_{0}, {0}.conf, {0}-1 of {0}."
    one, two = (host_names._nameless(messages.format(host), host) for host in ("me", "up"))
    assert one != two, "the path, the option and the names of others are different things"
    assert one.count("the host") == 3


def test_transport_messages_differing_by_host_are_one():
    hosts = [f"gpu{number:02}" for number in range(20)]
    every = [
        host_keys.Host(host, host, 22, ("/root/.ssh/known_hosts",), openssh.login_command(Target(host))).unknown()
        for host in hosts
    ]
    found = host_names.causes((each.state, host, each.message) for host, each in zip(hosts, every, strict=True))
    ((why, folded),) = found["unknown host key"]
    assert folded == hosts
    assert "ssh-keyscan the host |" in why
    assert "gpu" not in why
    shown = printed(refused(hosts, "{0} port 22 refused the connection"))
    assert shown.count("port 22 refused") == 1
    assert "the host's port 22 refused the connection" in shown


def test_files_that_are_bad_in_one_way_are_one_reason():
    found = host_names.causes(("bad facts", host, f"facts/{host}.json: not a file") for host in ("n1", "n2"))
    assert found == {"bad facts": [("facts/HOST.json: not a file", ["n1", "n2"])]}


def test_the_most_common_reason_comes_first_and_none_is_dropped():
    hosts = [result(f"gpu{number:02}", state="dropped", message=f"reason {number}") for number in range(9)]
    hosts += [result(f"cpu{number}", state="dropped", message="the common one") for number in range(3)]
    shown = printed(hosts)
    assert shown.index("the common one") < shown.index("reason 0")
    assert "… and 4 more reasons (4 hosts): --format json lists all" in shown
    assert "more reason" not in printed(hosts[:6])
    assert "1 more reason (1 host)" in printed(hosts[:7])


# --- lists of hosts


@pytest.mark.parametrize("hosts", [ODD, FULL], ids=["odd", "racks"])
@pytest.mark.parametrize("longest", [30, 60, 160])
def test_a_cut_list_of_hosts_says_how_many_are_left_out(hosts, longest):
    shown = host_names.fold(hosts, longest)
    assert len(shown) <= max(longest, len(hosts[0]) + len(" … 300 more"))
    first, left = re.fullmatch(r"(.+) … (\d+) more", shown).groups()
    named = nodeset.unfold(first)
    assert set(named) < set(hosts)
    assert len(named) + int(left) == len(hosts)


def test_a_list_that_fits_is_whole():
    assert host_names.fold(f"n{number:05}" for number in range(20000)) == "n[00000-19999]"
    racks = (f"rack{rack}-gpu{number}" for rack in range(40) for number in range(8))
    assert host_names.fold(racks, 40) == "rack[0-39]-gpu[0-7]"
    assert host_names.fold(ODD, host_names.WHOLE) == nodeset.fold(ODD)


def test_names_that_are_no_node_set_are_cut_between_names_too():
    shown = host_names.fold([f"odd name {number}" for number in range(50)], 60)
    assert re.fullmatch(r"(odd name \d+,?)+ … \d+ more", shown)


def test_more_hosts_than_are_counted_at_a_glance_are_counted():
    assert host_names.named(["a1", "a2"]) == "a[1-2]"
    assert host_names.named([f"a{number}" for number in range(9)]) == "9 hosts  a[0-8]"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_lines_break_at_spaces_and_commas_but_not_in_names(width):
    stream = io.StringIO()
    console = lines.console(stream)
    console.width = width
    folded = nodeset.fold(ODD)
    lines.Lines(console).line("on ", folded, ": bad", indent="    ")
    rows = stream.getvalue().splitlines()
    assert "".join(row.strip() for row in rows).replace(" ", "") == f"on{folded}:bad"
    assert all(row.rstrip().endswith(",") for row in rows[:-2])
    assert max(map(len, rows)) <= width


def test_a_name_longer_than_a_line_is_wrapped():
    stream = io.StringIO()
    console = lines.console(stream)
    console.width = 50
    lines.Lines(console).line("漢字" * 40)
    assert stream.getvalue().replace("\n", "") == "漢字" * 40
    assert max(map(len, stream.getvalue().splitlines())) <= 25, "each of these is two columns wide"


# --- the whole report


def test_the_summary_says_how_many_hosts_are_compliant():
    hosts = [result("a"), result("b", finding()), result("c", finding(status="unknown")), *refused("d", "port 22")]
    assert "3 hosts audited, 1 not reached, 1 compliant: 1 finding: 1 high" in printed(hosts)
    assert "compliant" not in printed([result("a", finding())])


def test_of_a_plan_one_is_one():
    fixable, manual = finding(fix=Fix("sysctl", "a.b", 1, "none")), finding("edac", manual="Replace the DIMM.")
    for number, told in ((1, "1 step on 1 host; 1 finding needs"), (2, "2 steps on 2 hosts; 2 findings need")):
        found = [result(f"gpu{each}", fixable, manual) for each in range(number)]
        stream = io.StringIO()
        text_plan.print_plan(stream, [plan.HostPlan(each, (fixable,)) for each in found])
        assert f"{told} manual work. Nothing was changed." in stream.getvalue()


def test_a_plan_tells_why_hosts_were_not_reached_once():
    stream = io.StringIO()
    found = refused([f"gpu{number:02}" for number in range(20)], "{0} port 22 refused the connection")
    text_plan.print_plan(stream, [plan.HostPlan(each) for each in found])
    assert stream.getvalue().count("port 22") == 1
    assert "refused  20 hosts  gpu[00-19]" in stream.getvalue()


def test_a_host_with_unknown_findings_is_not_compliant():
    shown = printed([result("a"), result("b", finding()), result("c", finding(status="unknown"))], by_host=True)
    assert "a  compliant\n" in shown
    assert "b  1 finding\n" in shown
    assert "c  no findings\n" in shown


def test_one_value_more_than_are_shown_is_one_other_value():
    hosts = [result(f"gpu{number}", finding(observed=str(number))) for number in range(explained.MAX_LINES + 1)]
    assert "… and other values on 1 host: -l HOST shows one" in printed(hosts)


def test_a_fleet_of_files_is_told_on_a_screen_or_two(tmp_path):
    facts = {"host.kernel": {"value": "x"}, "sysctl.vm.swappiness": {"value": 60}}
    for host in ODD:
        (tmp_path / f"{host}.json").write_text(json.dumps({"host": host, "facts": facts}))
    done = nodetune("audit", "--facts", tmp_path, "--no-compare")
    assert "300 hosts audited" in done.stdout
    assert len(done.stdout.splitlines()) < 80
    assert all(row.count("[") == row.count("]") for row in done.stdout.splitlines())
