"""From findings about CPU frequency to changes."""

import pytest

from nodetune.api.model import Absent, HostFacts, Value
from nodetune.api.remedies import cpufreq
from nodetune.foundation.text import own_settings
from nodetune.remediation import host_changes
from tests.support.fixing import built, files, finding_of, of_kind, refused

CONF = "/etc/nodetune/cpu.conf"
DEBIAN = {"id": "debian", "version": "12", "like": ["debian"], "name": "Debian"}
ON = {"active": "active", "enabled": "enabled"}


def host(own=None, **units):
    names = ("tuned", "ondemand", "cpufrequtils", "loadcpufreq", "cpupower", "power-profiles-daemon")
    facts = {f"services.{name}": Absent("not installed") for name in names}
    facts |= {f"services.{name.replace('_', '-')}": Value(unit) for name, unit in units.items()}
    facts |= {"host.os": Value(DEBIAN), "own.files": Value(own or {})}
    return HostFacts("gpu01", {"services.tuned_profile": Absent("none"), **facts})


def step(setting, value):
    return finding_of(cpufreq(setting), value, ("cpu0-7",), f"{setting}-wrong")


def test_all_settings_are_made_now_and_at_boot():
    steps = [step("governor", "performance"), step("boost", value=True), step("idle_latency_us", 99)]
    changes = built(host(), *steps)
    assert own_settings(files(changes)[CONF]) == {"governor": "performance", "boost": True, "idle_latency_us": 99}
    assert of_kind(changes, "cpu")[0] == {
        "change": "cpu",
        "setting": "governor",
        "value": "performance",
        "checks": ["governor-wrong"],
    }
    assert "def main(" in files(changes)["/usr/local/lib/nodetune/cpu/nodetune_host/resources/cpu.py"]
    assert "nodetune_host.resources.cpu" in files(changes)["/etc/systemd/system/nodetune-cpu.service"]
    assert of_kind(changes, "unit")[-1]["unit"] == "nodetune-cpu.service"


def test_at_boot_settings_wait_for_the_driver_that_udev_loads():
    unit = files(built(host(), step("governor", "performance")))["/etc/systemd/system/nodetune-cpu.service"]
    assert unit.index("ExecStartPre=-/usr/bin/env udevadm settle") < unit.index("ExecStart=")


def test_the_energy_preference_comes_before_the_governor():
    changes = built(host(), step("governor", "performance"), step("epp", "performance"))
    assert [change["setting"] for change in of_kind(changes, "cpu")] == ["epp", "governor"]


def test_what_earlier_runs_set_at_boot_stays():
    own = {CONF: '# settings: {"boost": true}\n'}
    written = files(built(host(own), step("governor", "performance")))[CONF]
    assert own_settings(written) == {"boost": True, "governor": "performance"}


@pytest.mark.parametrize(
    ("unit", "known", "enabled"),
    [
        ("cpupower", ON, "disabled"),
        ("ondemand", {"active": "inactive", "enabled": "enabled"}, "disabled"),
        ("cpupower", {"active": "inactive", "enabled": "enabled-runtime"}, "disabled"),
        ("cpufrequtils", {"active": "active", "enabled": "generated"}, "masked"),
        ("power-profiles-daemon", ON, "masked"),
    ],
)
def test_another_owner_is_switched_off_first_and_named(unit, known, enabled):
    facts = host(**{unit: known})
    changes = built(facts, step("governor", "performance"))
    assert changes[0] == {"change": "unit", "unit": f"{unit}.service", "enabled": enabled, "active": "stopped"}
    groups, _ = host_changes.build([step("governor", "performance")], facts)
    assert unit in groups[0].notes[0]


def test_an_owner_that_is_off_is_left_alone():
    changes = built(host(cpupower={"active": "inactive", "enabled": "disabled"}), step("governor", "performance"))
    assert [change["unit"] for change in of_kind(changes, "unit")] == ["nodetune-cpu.service"]


@pytest.mark.parametrize(
    ("setting", "value"), [("governor", 1), ("boost", "on"), ("max_perf_pct", "100"), ("colour", "blue")]
)
def test_a_value_of_the_wrong_kind_is_refused(setting, value):
    assert refused(host(), step(setting, value))
