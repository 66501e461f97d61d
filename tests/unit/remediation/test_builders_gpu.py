"""From findings about GPUs to changes."""

import subprocess
import sys

import pytest

from nodetune.api.model import Absent, Each, HostFacts, Unread, Value
from nodetune.api.remedies import gpu
from nodetune.foundation.text import own_settings
from nodetune.remediation import host_changes
from tests.support.fixing import built, files, finding_of, of_kind, refused

UBUNTU = {"id": "ubuntu", "version": "22.04", "like": ["ubuntu", "debian"], "name": "Ubuntu"}
CONF = "/etc/nodetune/gpu.conf"
DROP_IN = "/etc/systemd/system/nvidia-persistenced.service.d/zz-nodetune-persistence.conf"
SHIPPED = "/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose"


def host(daemon=None, own=None, **facts):
    found = {
        "host.os": Value(UBUNTU),
        "own.files": Value(own or {}),
        "gpu.uuid": Each({f"GPU{number}": Value(f"GPU-{number}") for number in range(4)}),
        "services.nvidia-persistenced": Value(daemon) if daemon else Absent("not installed"),
    }
    return HostFacts("gpu01", found | facts)


def unit(enabled="enabled", active="active", exec_=SHIPPED):
    return {"enabled": enabled, "active": active, "exec": exec_}


def step(setting, value, subjects=("GPU1",), disruption="none"):
    return finding_of(gpu(setting, disruption), value, subjects, f"{setting}-wrong")


def test_a_setting_is_made_now_and_at_boot_by_the_same_code():
    changes = built(host(), step("compute_mode", "default"))
    assert of_kind(changes, "gpu") == [
        {
            "change": "gpu",
            "setting": "compute_mode",
            "gpus": [1],
            "value": "default",
            "checks": ["compute_mode-wrong"],
        }
    ]
    written = files(changes)
    assert own_settings(written[CONF]) == {"compute_mode": {"1": "default"}}
    assert "def main(" in written["/usr/local/lib/nodetune/gpu/nodetune_host/resources/gpu.py"]
    assert "def nvmlInit(" in written["/usr/local/lib/nodetune/gpu/pynvml.py"]
    assert "Environment=PYTHONPATH=/usr/local/lib/nodetune/gpu" in written["/etc/systemd/system/nodetune-gpu.service"]
    assert of_kind(changes, "unit") == [
        {
            "change": "unit",
            "unit": "nodetune-gpu.service",
            "enabled": "enabled",
            "active": None,
            "checks": ["compute_mode-wrong"],
        }
    ]


def test_at_boot_settings_wait_for_the_driver_that_udev_loads():
    unit = files(built(host(), step("compute_mode", "default")))["/etc/systemd/system/nodetune-gpu.service"]
    assert unit.index("ExecStartPre=-/usr/bin/env udevadm settle") < unit.index("ExecStart=")


def test_the_code_of_the_boot_unit_needs_no_other_file(tmp_path):
    folder = "/usr/local/lib/nodetune/gpu/"
    for path, text in files(built(host(), step("compute_mode", "default"))).items():
        if path.startswith(folder):
            place = tmp_path / path[len(folder) :]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from nodetune_host import nvml; from nodetune_host.resources import gpu; nvml.binding()"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


def test_what_earlier_runs_set_at_boot_stays():
    own = {CONF: '# settings: {"compute_mode": {"0": "default"}, "power_limit": {"1": 500000}}\n'}
    settings = own_settings(files(built(host(own=own), step("compute_mode", "default")))[CONF])
    assert settings == {"compute_mode": {"0": "default", "1": "default"}, "power_limit": {"1": 500000}}


def test_settings_of_both_disruptions_end_up_in_one_file():
    mig = step("mig_mode", "disabled", ("GPU2",), "idle GPU")
    changes = built(host(), step("compute_mode", "default"), mig)
    last = [change["content"] for change in of_kind(changes, "file") if change["path"] == CONF][-1]
    assert own_settings(last) == {
        "compute_mode": {"1": "default"},
        "mig_mode": {"2": "disabled"},
        "mig_devices": {},
    }


def test_the_gpu_keeps_its_ecc_mode_itself():
    assert files(built(host(), step("ecc_mode", "enabled", disruption="idle GPU"))) == {}


def test_persistence_comes_first_and_is_for_every_gpu():
    changes = of_kind(built(host(), step("accounting_mode", "enabled"), step("persistence_mode", "enabled")), "gpu")
    assert [(change["setting"], change["gpus"]) for change in changes] == [
        ("persistence_mode", [0, 1, 2, 3]),
        ("accounting_mode", [1]),
    ]


def test_gpus_are_in_mig_mode_before_they_are_divided():
    layout, mode = step("mig_devices", {"1g.18gb": 7}), step("mig_mode", "enabled")
    assert [each["setting"] for each in of_kind(built(host(), layout, mode), "gpu")] == ["mig_mode", "mig_devices"]


def test_the_daemon_has_persistence_where_it_is_installed():
    changes = built(host(unit("disabled", "inactive")), step("persistence_mode", "enabled"))
    assert list(files(changes)) == [DROP_IN]
    assert "ExecStart=\nExecStart=" + SHIPPED.replace("--no-p", "--p") in files(changes)[DROP_IN]
    kinds = [change["change"] for change in changes]
    assert kinds == ["file", "unit", "gpu"], "the drop-in counts for the start, the mode is set where it was not"
    assert changes[1]["unit"] == "nvidia-persistenced.service" and changes[1]["active"] == "started"


def test_a_daemon_with_the_right_flags_needs_no_drop_in():
    right = unit(exec_=SHIPPED.replace("--no-persistence-mode", "--persistence-mode"))
    assert files(built(host(right), step("persistence_mode", "enabled"))) == {}


def test_a_masked_daemon_is_not_there():
    assert CONF in files(built(host(unit("masked", "inactive")), step("persistence_mode", "enabled")))


def test_a_command_line_that_systemd_would_expand_is_not_copied():
    hostile = unit(exec_="/usr/bin/nvidia-persistenced --no-persistence-mode {{ lookup('pipe', 'id') }} %n")
    assert "not plain" in refused(host(hostile), step("persistence_mode", "enabled"))


def test_a_layout_brings_its_mode_and_merges_as_a_whole():
    own = {CONF: '# settings: {"mig_devices": {"1": [["3g.71gb", 2]]}, "mig_mode": {"1": "disabled"}}\n'}
    changes = built(host(own=own), step("mig_devices", {"1g.18gb": 7}, disruption="idle GPU"))
    settings = own_settings(files(changes)[CONF])
    assert settings == {"mig_devices": {"1": [["1g.18gb", 7]]}, "mig_mode": {"1": "enabled"}}


def test_mig_off_forgets_the_layout_of_the_next_boot():
    own = {CONF: '# settings: {"mig_devices": {"1": [["3g.71gb", 2]]}, "mig_mode": {"1": "enabled"}}\n'}
    changes = built(host(own=own), step("mig_mode", "disabled", disruption="idle GPU"))
    assert own_settings(files(changes)[CONF]) == {"mig_devices": {}, "mig_mode": {"1": "disabled"}}


def test_whatever_makes_gpus_idle_is_guarded():
    groups, _ = host_changes.build([step("mig_mode", "disabled", disruption="idle GPU")], host())
    assert groups[0].guard == {"gpu_idle": True}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("mig_devices", {"{{ evil }}": 1}),
        ("mig_devices", {"1g.18gb": "many"}),
        ("mig_devices", 7),
        ("compute_mode", True),
        ("locked_clocks", [1, 2, 3]),
        ("colour", "green"),
    ],
)
def test_a_value_that_is_none_is_refused(setting, value):
    assert refused(host(), step(setting, value))


def test_without_knowing_the_gpus_nothing_is_set():
    facts = host(**{"gpu.uuid": Unread("NVML: the NVIDIA driver is not loaded")})
    assert "driver" in refused(facts, step("compute_mode", "default", subjects=()))


def test_the_same_settings_are_the_same_bytes():
    first = built(host(), step("compute_mode", "default"))
    assert built(host(own=files(first)), step("compute_mode", "default")) == first


def test_a_group_takes_a_later_ones_file_as_its_own():
    steps = [
        step("compute_mode", "default"),
        step("ecc_mode", "enabled", disruption="idle GPU"),
        step("mig_mode", "disabled", disruption="idle GPU"),
    ]
    first, second = (
        {change["path"]: change for change in of_kind(group.changes, "file")}
        for group in host_changes.build(steps, host())[0]
    )
    assert first[CONF]["or"] == [second[CONF]["content"]]
    assert set(own_settings(second[CONF]["content"])) >= {"compute_mode", "mig_mode"}
    assert not any("or" in change for change in [*second.values(), *(first[path] for path in first if path != CONF)])


H200, A100 = "NVIDIA H200", "NVIDIA A100-SXM4-80GB"
CLOCKS = {"sm": list(range(345, 1981, 15)), "memory": [2201, 3201]}


def mixed():
    """GPU0 and GPU1 are H200s, GPU2 and GPU3 are A100s."""
    names = [H200, H200, A100, A100]
    each = lambda values: Each({f"GPU{number}": Value(value) for number, value in enumerate(values)})  # noqa: E731
    facts = {
        "gpu.names": each(names),
        "gpu.power_management_limit_constraints": each([[200_000, 700_000]] * 2 + [[100_000, 400_000]] * 2),
        "gpu.supported_clocks": each([CLOCKS] * 4),
    }
    return host(**facts)


EVERY = ("GPU0", "GPU1", "GPU2", "GPU3")


def test_each_gpu_gets_what_its_model_is_to_have_now_and_at_boot():
    changes = built(mixed(), step("power_limit", {H200: 600_000, A100: 300_000}, EVERY))
    assert [(each["gpus"], each["value"]) for each in of_kind(changes, "gpu")] == [
        ([0, 1], 600_000),
        ([2, 3], 300_000),
    ]
    kept = {"power_limit": {"0": 600_000, "1": 600_000, "2": 300_000, "3": 300_000}}
    assert own_settings(files(changes)[CONF]) == kept


@pytest.mark.parametrize(("value", "locked"), [(1500, [1500, 1500]), ([345, 1500], [345, 1500]), ("none", "none")])
def test_one_clock_is_locked_as_a_range_of_itself(value, locked):
    changes = built(mixed(), step("locked_clocks", {H200: value}, ("GPU0",)))
    assert of_kind(changes, "gpu")[0]["value"] == locked
    assert own_settings(files(changes)[CONF]) == {"locked_clocks": {"0": locked}}


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("power_limit", {H200: 800_000}, "GPU0 allows power limits from 200 W to 700 W, not 800 W"),
        ("power_limit", {H200: "600"}, "a power limit is a number of watts such as 600W, not '600'"),
        ("power_limit", {A100: 300_000}, f"GPU0 is a {H200}, and `set` has no power_limit for it: add it in the site file"),
        ("locked_clocks", {H200: 1501}, "GPU0 has no sm clock of 1501 MHz: the nearest are 1500 and 1515, of 345 to 1980"),
        ("locked_clocks", {H200: [1500, 345]}, "clocks are one such as 1500MHz, [lowest, highest], or none, not [1500, 345]"),
        ("locked_memory_clocks", {H200: 2200}, "GPU0 has no memory clock of 2200 MHz: the nearest are 2201 and 3201, of 2201 to 3201"),
    ],
)  # fmt: skip
def test_what_a_gpu_does_not_allow_is_refused_before_any_write(setting, value, why):
    assert refused(mixed(), step(setting, value, ("GPU0",))) == why
