"""TCP as a subject of tuning: what it refuses, what it tries, what a trial is, and what it proposes."""

import random

import pytest
import yaml

from nodetune.api.model import Absent, HostFacts, Value
from nodetune.config import site
from nodetune.hosts.target import Target
from nodetune.tune import document as tuning
from nodetune.tune import study
from nodetune.tune.benches.tcp import TcpBench, TcpRequest
from nodetune.tune.model import BenchError

ALLOWED = TcpRequest(allow_settings=True)
SIZES = [4096, 131072, 6291456]


def facts(host, **more):
    found = {
        "host.kernel": "6.8.0-100-generic",
        "sysctl.net.ipv4.tcp_rmem": SIZES,
        "sysctl.net.ipv4.tcp_wmem": [4096, 16384, 4194304],
        "sysctl.net.ipv4.tcp_congestion_control": "cubic",
        "sysctl.net.ipv4.tcp_available_congestion_control": "reno cubic bbr dctcp",
        "sysctl.net.core.netdev_max_backlog": 1000,
    }
    return HostFacts(host, {name: Value(value) for name, value in {**found, **more}.items()})


class Hosts:
    """Two hosts on a path that needs `enough` bytes of buffer."""

    def __init__(self, enough=16 << 20, problem=None, others=None, address="10.1.0.2"):
        self.enough, self.problem, self.others, self.address = enough, problem, others, address
        self.items, self.dice = [], random.Random(5)

    def how(self, targets, plan_for, _reach):
        (item,) = plan_for(targets[0])["measurements"]
        assert plan_for(targets[0])["group"] == {"hosts": ["a", "b"]}
        self.items.append(item)
        sizes = item["options"].get("hold", {}).get("/proc/sys/net/ipv4/tcp_rmem", f"4096 131072 {SIZES[2]}")
        one = 90.0 * min(1.0, int(sizes.split()[2]) / self.enough)
        for metric, value in (("one_stream", one), ("tcp", 92.0)):
            for way in ("a→b", "b→a"):
                noise = self.dice.gauss(1, 0.003)
                about = {"address": self.address, "interface": "eth0", "retransmitted": 0.0, "congestion": "cubic"}
                record = {"measurement": "tcp", "metric": metric, "subject": way, "samples": [value * noise]}
                yield targets[0], {"record": record | {"unit": "Gb/s", "better": "higher", "about": about}}
        if self.others:
            yield targets[0], {"done": {"measurement": "tcp", "others": self.others}}
        for problem in [self.problem] if isinstance(self.problem, str) else self.problem or ():
            yield targets[0], {"record": {"measurement": "tcp", "failed": problem}}


def bench(hosts=None, wanted=ALLOWED, names=("a", "b"), **more):
    given = {name: facts(name, **more.get(name, {})) for name in names}
    return TcpBench([Target(name) for name in names], wanted, None, (hosts or Hosts()).how, lambda *_: given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"wanted": TcpRequest()}, "allow this with --allow-settings"),
        ({"names": ("a",)}, "1 host: TCP tuning needs exactly two, as in -l HOST,HOST"),
        (
            {"b": {"sysctl.net.ipv4.tcp_rmem": [4096, 87380, 6291456]}},
            "a and b differ in sysctl.net.ipv4.tcp_rmem ([4096, 131072, 6291456] and [4096, 87380, 6291456]): make them equal",
        ),
        ({"hosts": Hosts(problem="b: iperf3 is not installed: apt install iperf3")}, "iperf3 is not installed"),
    ],
    ids=["not-allowed", "one-host", "unlike", "no-iperf3"],
)
def test_what_cannot_be_tuned_is_refused_in_one_line(given, why):
    with pytest.raises(BenchError) as refused:
        bench(**given)
    assert why in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(("times", "refused"), [(1, False), (2, True)])
def test_a_connection_that_breaks_at_the_first_look_is_tried_once_more(times, refused):
    hosts = Hosts()
    reasons = ["iperf3: Connection reset by peer"] * times

    def how(*given):
        hosts.problem = reasons.pop() if reasons else None
        return Hosts.how(hosts, *given)

    hosts.how = how
    if not refused:
        assert bench(hosts).cases
        return
    with pytest.raises(BenchError, match="Connection reset by peer"):
        bench(hosts)


def test_choices_are_what_the_hosts_have_and_is_not_set():
    found = {each.name: each.choices for each in bench().parameters}
    assert found == {
        "tcp_buffers": ("1MiB", "4MiB", "16MiB", "64MiB", "256MiB"),
        "congestion_control": ("bbr",),
        "netdev_max_backlog": (5000, 30000),
    }


def test_buffers_are_never_below_what_a_socket_starts_with():
    large = {"sysctl.net.ipv4.tcp_rmem": [4096, 8 << 20, 64 << 20], "sysctl.net.ipv4.tcp_wmem": [4096, 16384, 64 << 20]}
    found = {each.name: each.choices for each in bench(a=large, b=large).parameters}
    assert found["tcp_buffers"] == ("16MiB", "256MiB")


def test_a_trial_holds_both_buffers_and_only_with_leave():
    hosts = Hosts()
    made = bench(hosts)
    assert made.measure((("tcp_buffers", "64MiB"),), made.cases).counts
    assert "hold" not in hosts.items[0]["options"]
    assert hosts.items[1]["options"]["hold"] == {
        "/proc/sys/net/ipv4/tcp_rmem": f"4096 131072 {64 << 20}",
        "/proc/sys/net/ipv4/tcp_wmem": f"4096 16384 {64 << 20}",
    }
    assert hosts.items[1]["options"]["allow_settings"] is True


def test_the_smallest_buffer_that_the_path_needs_is_found():
    hosts = Hosts(enough=16 << 20)
    made = bench(hosts)
    outcome = study.tune(made, 3600.0)
    assert (outcome.state, outcome.setting) == (study.ACCEPTED, (("tcp_buffers", "16MiB"),))
    assert 1.5 < outcome.confirmations[-1].ratio < 1.8, "from 6 to 16 MiB: 2.67 times as much, not its logarithm"


def test_where_buffers_do_nothing_the_default_stays():
    outcome = study.tune(bench(Hosts(enough=1 << 20)), 3600.0)
    assert outcome.state == study.NOTHING


def test_a_host_that_cannot_restore_ends_the_tuning():
    hosts = Hosts()
    made = bench(hosts)
    hosts.problem = "settings of this host: not restored: /proc/sys/net/ipv4/tcp_rmem: read-only"
    with pytest.raises(BenchError, match="not restored.*: set it manually"):
        made.measure((), made.cases)


def test_a_stream_that_took_another_way_does_not_count():
    hosts = Hosts()
    made = bench(hosts)
    hosts.address = "192.168.7.2"
    trial = made.measure((), made.cases)
    assert trial.failed == "one_stream a→b took another path: 192.168.7.2 by eth0"


def test_a_disturbed_trial_does_not_count():
    hosts = Hosts()
    made = bench(hosts)
    hosts.others = {"cpu": 0.4, "cpu_seconds": 3.0, "processes": []}
    assert made.measure((), made.cases).disturbed.startswith("a: others used 40% of the CPUs")


def test_another_verify_on_a_host_disturbs_and_drops_nothing():
    hosts = Hosts()
    made = bench(hosts)
    hosts.problem = "another verify is running on this host (process 7): wait for it, or end it"
    trial = made.measure((), made.cases)
    assert (trial.failed, trial.disturbed) == ("", hosts.problem)


@pytest.mark.parametrize(
    "problems",
    [
        ["iperf3 printed no figures", "settings of this host: not restored: /proc/sys/net/ipv4/tcp_rmem: read-only"],
        ["settings of this host: /run/nodetune/trial.json: Expecting value: inspect the file and remove it"],
        ["settings are not restored: no answer within 60 s"],
        [
            "another tuning holds settings of this host: wait for its end",
            "settings of this host: not restored: /proc/sys/net/ipv4/tcp_rmem: read-only",
        ],
    ],
)
def test_whatever_says_that_settings_are_left_ends_the_tuning(problems):
    hosts = Hosts()
    made = bench(hosts)
    hosts.problem = problems
    with pytest.raises(BenchError, match=": set it manually"):
        made.measure((("tcp_buffers", "64MiB"),), made.cases)


@pytest.mark.parametrize("prefix", ["", "settings of this host: "])
def test_another_tuning_that_holds_settings_disturbs_and_drops_nothing(prefix):
    hosts = Hosts()
    made = bench(hosts)
    hosts.problem = f"{prefix}another tuning holds settings of this host: wait for its end"
    trial = made.measure((("tcp_buffers", "64MiB"),), made.cases)
    assert (trial.failed, trial.disturbed) == ("", hosts.problem)


def test_a_login_that_may_not_change_settings_ends_it_with_what_to_add():
    hosts = Hosts()
    made = bench(hosts)
    hosts.problem = "settings are changed as root only: [Errno 13] Permission denied: '/run/nodetune'"
    with pytest.raises(BenchError, match=": -b becomes root$"):
        made.measure((("tcp_buffers", "64MiB"),), made.cases)


def test_what_holds_by_default_belongs_to_the_result():
    assert bench().provenance()["defaults"]["net.core.netdev_max_backlog"] == 1000


def test_a_host_is_named_once_in_why_it_cannot_be_reached():
    given = {"a": facts("a"), "b": "b: Name or service not known"}
    with pytest.raises(BenchError, match=r"^b: Name or service not known$"):
        TcpBench([Target("a"), Target("b")], ALLOWED, None, Hosts().how, lambda *_: given)


def test_the_proposal_is_a_site_file_that_replaces_the_checks(tmp_path):
    made = bench()
    setting = (("congestion_control", "bbr"), ("tcp_buffers", "64MiB"))
    found = made.proposal(setting)
    assert found["checks"] == {
        "congestion-control-unusual": False,
        "tcp-rmem-below-bandwidth": False,
        "tcp-wmem-below-bandwidth": False,
    }
    assert {each["sysctl"]: each["set"] for each in found["add"]} == {
        "net.ipv4.tcp_congestion_control": "bbr",
        "net.ipv4.tcp_rmem": [4096, 131072, 64 << 20],
        "net.ipv4.tcp_wmem": [4096, 16384, 64 << 20],
    }
    path = tmp_path / "site.yml"
    path.write_text(yaml.safe_dump(found))
    site.read([path])


def test_a_host_without_the_queue_is_tuned_without_it():
    given = {name: facts(name) for name in ("a", "b")}
    given["b"].facts["sysctl.net.core.netdev_max_backlog"] = Absent()
    made = TcpBench([Target("a"), Target("b")], ALLOWED, None, Hosts().how, lambda *_: given)
    assert [each.name for each in made.parameters] == ["tcp_buffers", "congestion_control"]


def test_another_kernel_makes_the_tuning_stale():
    made = bench(Hosts())
    found = tuning.document(made, study.tune(made, 3600.0), 3600.0)
    stale = found["proposal"]["add"][-1]
    assert (stale["id"], stale["fact"]) == ("site-tuning-tcp-stale", "host.kernel")
    assert stale["accept"] == {"equals": "6.8.0-100-generic"}
