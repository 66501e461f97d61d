"""Link settings are read from real virtual links and from what ethtool prints; timed undoing is tested in the fleet."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import link

HOST_CODE = Path(__file__).parents[3] / "playbooks" / "module_utils"
RINGS = """\
Ring parameters for eth0:
Pre-set maximums:
RX:		8192
RX Mini:	n/a
RX Jumbo:	4096
TX:		8192
TX push buff len:	n/a
Current hardware settings:
RX:		1024
RX Mini:	n/a
RX Jumbo:	128
TX:		512
RX Buf Len:		n/a
CQE Size:		n/a
TX Push:	off
"""
CHANNELS = """\
Channel parameters for eth0:
Pre-set maximums:
RX:		n/a
TX:		n/a
Other:		1
Combined:	63
Current hardware settings:
RX:		n/a
TX:		n/a
Other:		1
Combined:	16
"""


def test_rings_are_read_without_what_the_driver_does_not_have():
    assert link.amounts(RINGS, link.RINGS) == {
        "Ring parameters for eth0": {},
        link.MAXIMUMS: {"rx": 8192, "tx": 8192},
        link.NOW: {"rx": 1024, "tx": 512},
    }


def test_only_combined_channels_are_read():
    assert link.amounts(CHANNELS, link.CHANNELS)[link.NOW] == {"combined": 16}


@pytest.mark.parametrize(
    ("text", "state"), [("Adaptive RX: on  TX: off\n", "on"), ("Adaptive RX: off  TX: on\n", "off")]
)
def test_adaptive_moderation_is_that_of_receiving(text, state):
    assert link.adaptive("Coalesce parameters for eth0:\n" + text, "eth0 adaptive-rx") == state


def test_a_driver_without_adaptive_moderation_is_a_problem():
    with pytest.raises(ChangeError, match="eth0 adaptive-rx: the driver does not have this setting"):
        link.adaptive("Adaptive RX: n/a  TX: n/a\n", "eth0 adaptive-rx")


@pytest.mark.parametrize(
    ("setting", "state", "command"),
    [
        ("mtu", {"mtu": 9000}, "ip link set dev eth0 mtu 9000"),
        ("rings", {"rx": 8192, "tx": 4096}, "ethtool -G eth0 rx 8192 tx 4096"),
        ("channels", {"combined": 8}, "ethtool -L eth0 combined 8"),
        ("adaptive-rx", {"adaptive-rx": "on"}, "ethtool -C eth0 adaptive-rx on"),
    ],
)
def test_each_setting_has_its_command(setting, state, command):
    assert link.setter({"link": "eth0", "setting": setting}, state) == command.split()


def test_a_number_for_rings_is_meant_for_both_directions():
    change = {"link": "eth0", "setting": "rings", "value": 2048}
    assert link.wanted(change, {"rx": 256, "tx": 512}) == {"rx": 2048, "tx": 2048}


def test_a_link_with_special_characters_has_a_valid_timer():
    assert link.timer({"link": "eth0@v+1", "setting": "mtu"}) == "nodetune-link-eth0_v_1-mtu"


def inside_a_network_namespace(code):
    """Runs code with `link` imported next to two veth links a0 and a1; returns the JSON that it prints."""
    setup = "mount -t sysfs none /sys && ip link add a0 type veth peer name a1 && exec "
    script = f"import json, sys\nsys.path.insert(0, {str(HOST_CODE)!r})\n"
    script += (
        "from nodetune_host.resources import link\nfrom nodetune_host.problem import ChangeError\n"
        + textwrap.dedent(code)
    )
    command = ["unshare", "--net", "--mount", "sh", "-c", f'{setup}"$0" "$@"', sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


needs_namespace = pytest.mark.skipif(
    bool(os.geteuid()) or not shutil.which("ip") or subprocess.run(["unshare", "--net", "true"]).returncode != 0,
    reason="needs root and network namespaces",
)


@needs_namespace
def test_the_mtu_of_a_real_link_is_read_and_set():
    assert inside_a_network_namespace("""
        from nodetune_host import command
        change = {"link": "a0", "setting": "mtu", "value": 9000}
        before = link.read(change)
        command.run(link.setter(change, link.wanted(change, before)))
        print(json.dumps([before, link.read(change), link.read(dict(change, link="a1"))]))
    """) == [{"mtu": 1500}, {"mtu": 9000}, {"mtu": 1500}]


@needs_namespace
@pytest.mark.skipif(os.path.isdir(link.SYSTEMD), reason="about machines without systemd")
def test_without_systemd_a_link_is_left_alone():
    message, mtu = inside_a_network_namespace("""
        change = {"link": "a0", "setting": "mtu", "value": 9000}
        try:
            link.put(change, {"mtu": 9000})
        except ChangeError as problem:
            print(json.dumps([str(problem), link.read(change)]))
    """)
    assert message.startswith("a0 mtu: left alone: without systemd")
    assert mtu == {"mtu": 1500}


@needs_namespace
@pytest.mark.skipif(not shutil.which("ethtool", path="/usr/sbin:/usr/bin:/sbin"), reason="needs ethtool")
@pytest.mark.parametrize("setting", ["rings", "channels", "adaptive-rx"])
def test_what_the_driver_of_a_real_link_lacks_is_a_problem(setting):
    message = inside_a_network_namespace(f"""
        try:
            print(json.dumps(link.read({{"link": "a0", "setting": "{setting}", "value": "max"}})))
        except ChangeError as problem:
            print(json.dumps(str(problem)))
    """)
    assert message.startswith(("a0 ", "ethtool -"))


def test_a_link_that_is_not_there_is_named():
    with pytest.raises(ChangeError, match="nowhere7: the link does not exist"):
        link.read({"link": "nowhere7", "setting": "mtu", "value": 9000})


def entry(number, before, after):
    change = {"change": "link", "link": "lo", "setting": "mtu", "value": after}
    states = {"before": {"mtu": before}, "after": {"mtu": after}}
    return {"n": number, "group": "net", "change": change, "checks": [], **states}


HEAD = {"run": "r1", "since": 0, "machine": "", "boot": ""}


def journal_of_a_run(home, *entries):
    folder = home / "runs" / "r1"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [HEAD, *entries]))


def test_a_change_that_still_holds_is_confirmed_by_its_name(tmp_path):
    mtu = link.read({"link": "lo", "setting": "mtu"})["mtu"]
    journal_of_a_run(tmp_path, entry(0, 1500, mtu - 1), entry(1, mtu - 1, mtu))
    assert link.confirm("r1", str(tmp_path)) == ["lo mtu"]


def test_a_change_that_undid_itself_before_is_a_problem(tmp_path):
    mtu = link.read({"link": "lo", "setting": "mtu"})["mtu"]
    journal_of_a_run(tmp_path, entry(0, mtu, mtu + 1))
    with pytest.raises(ChangeError, match="lo mtu: not confirmed in time and therefore undone"):
        link.confirm("r1", str(tmp_path))


def test_a_run_without_links_has_nothing_to_confirm(tmp_path):
    assert link.confirm("r1", str(tmp_path)) == []
