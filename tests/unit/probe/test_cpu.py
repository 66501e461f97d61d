"""The cpu collector on planted machines."""

import os
import stat

import pytest

from nodetune.probe import cpu_power, read

CPU = "/sys/devices/system/cpu"
ASKED = ["governor", "epp", "idle_states", "throttle_events"]


def xeon(number, socket, core, microcode="0xd0003f5"):
    return (
        f"processor\t: {number}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)\nmicrocode\t: {microcode}\n"
        f"physical id\t: {socket}\ncore id\t\t: {core}\nflags\t\t: fpu vme\n\n"
    )


def host(processors, online, **files):
    return {"/proc/cpuinfo": processors, f"{CPU}/online": online, f"{CPU}/present": online, **files}


TWO_SOCKETS = "".join(xeon(number, number % 2, number // 2 % 2) for number in range(8))


def value(facts, name):
    return facts[f"cpu.{name}"]["value"]


def test_sockets_cores_and_threads_come_from_cpuinfo(tree, collect):
    tree(host(TWO_SOCKETS, "0-7"))
    facts = collect("cpu")
    assert (value(facts, "count"), value(facts, "sockets"), value(facts, "cores")) == (8, 2, 4)
    assert value(facts, "smt") == "on"
    assert value(facts, "vendor") == "GenuineIntel"


def test_an_arm_machine_is_counted_by_its_topology_files(tree, collect):
    folders = {}
    for number in range(4):
        folders[f"{CPU}/cpu{number}/topology/physical_package_id"] = str(number // 2)
        folders[f"{CPU}/cpu{number}/topology/thread_siblings_list"] = str(number)
    processors = "".join(
        f"processor\t: {number}\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n" for number in range(4)
    )
    tree(host(processors, "0-3", **folders))
    facts = collect("cpu")
    assert (value(facts, "sockets"), value(facts, "cores"), value(facts, "smt")) == (2, 4, "off")
    assert value(facts, "vendor") == "ARM"
    assert "absent" in facts["cpu.microcode"]


def test_an_unreadable_topology_is_not_taken_for_one_socket(tree, collect):
    tree(host("processor\t: 0\n\nprocessor\t: 1\n\n", "0-1"))
    assert "unread" in collect("cpu")["cpu.sockets"]


def test_cores_that_differ_in_threads_are_mixed(tree, collect):
    tree(host(xeon(0, 0, 0) + xeon(1, 0, 0) + xeon(2, 0, 1), "0-2"))
    assert value(collect("cpu"), "smt") == "mixed"


def test_a_hybrid_processor_is_not_mixed(tree, collect):
    tree(host(xeon(0, 0, 0) + xeon(1, 0, 0) + xeon(2, 0, 1), "0-2", **{"/sys/devices/cpu_atom/type": "10"}))
    assert value(collect("cpu"), "smt") == "on"


def test_offline_cpus_are_those_present_but_not_online(tree, collect):
    tree({**host(TWO_SOCKETS, "0-5,7"), f"{CPU}/present": "0-7"})
    facts = collect("cpu")
    assert (value(facts, "offline"), value(facts, "offline_count")) == ("6", 1)


def test_cpus_that_say_the_same_fold_into_one_subject(tree, collect):
    governors = {f"{CPU}/cpu{number}/cpufreq/scaling_governor": "performance\n" for number in range(7)}
    governors[f"{CPU}/cpu7/cpufreq/scaling_governor"] = "powersave\n"
    tree(host(TWO_SOCKETS, "0-7", **governors))
    facts = collect("cpu", ASKED)
    assert facts["cpu.governor"] == {"each": {"cpu0-6": {"value": "performance"}, "cpu7": {"value": "powersave"}}}
    assert facts["cpu.epp"] == {"absent": "no frequency control for the CPUs here"}


def test_what_costs_a_read_per_cpu_is_left_out_unless_asked_for(tree, collect):
    tree(host(TWO_SOCKETS, "0-7"))
    found = set(collect("cpu"))
    assert "cpu.offline_count" in found
    assert not {f"cpu.{name}" for name in ASKED} & found


def test_microcode_that_differs_shows_as_two_groups(tree, collect):
    tree(host(xeon(0, 0, 0) + xeon(1, 1, 0, "0xd000389"), "0-1"))
    assert collect("cpu")["cpu.microcode"]["each"] == {"cpu0": {"value": "0xd0003f5"}, "cpu1": {"value": "0xd000389"}}


@pytest.mark.parametrize(
    ("files", "boost"),
    [
        ({f"{CPU}/intel_pstate/no_turbo": "1"}, {"value": False}),
        ({f"{CPU}/intel_pstate/no_turbo": "0", f"{CPU}/cpufreq/boost": "0"}, {"value": True}),
        ({f"{CPU}/cpufreq/boost": "1"}, {"value": True}),
        ({f"{CPU}/cpufreq/boost": "0"}, {"value": False}),
        ({}, {"absent": "not present on this host"}),
    ],
)
def test_both_drivers_tell_whether_boost_is_on(tree, collect, files, boost):
    tree(host(TWO_SOCKETS, "0-7", **files))
    assert collect("cpu")["cpu.boost"] == boost


def test_an_idle_state_names_the_cpus_that_may_enter_it(tree, collect):
    files = {}
    for number in (0, 1):
        for state, (name, latency, off) in enumerate((("POLL", 0, 0), ("C1", 1, 0), ("C6", 290, 1 - number))):
            folder = f"{CPU}/cpu{number}/cpuidle/state{state}/"
            files.update({folder + "name": name, folder + "latency": str(latency), folder + "disable": str(off)})
    tree(host(xeon(0, 0, 0) + xeon(1, 0, 1), "0-1", **files))
    states = value(collect("cpu", ASKED), "idle_states")
    assert states["C6"] == {"latency_us": 290, "enabled_on": "1"}
    assert states["C1"] == {"latency_us": 1, "enabled_on": "0-1"}


def test_the_latency_limit_is_read_in_its_binary_form(tree, collect):
    tree(host(TWO_SOCKETS, "0-7", **{"/dev/cpu_dma_latency": "c\0\0\0"}))
    assert value(collect("cpu"), "dma_latency_us") == 99


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_latency_limit_that_may_not_be_read_says_what_it_needs(tree, collect):
    root = tree(host(TWO_SOCKETS, "0-7", **{"/dev/cpu_dma_latency": "c\0\0\0"}))
    (root / "dev/cpu_dma_latency").chmod(stat.S_IWUSR)
    assert "needs root" in collect("cpu")["cpu.dma_latency_us"]["unread"]


def test_throttle_counts_have_each_package_and_hottest_core(tree, collect):
    files = {}
    for number in range(4):
        folder = f"{CPU}/cpu{number}/thermal_throttle/"
        files.update({folder + "core_throttle_count": str(number), folder + "package_throttle_count": str(number % 2)})
    tree(host("".join(xeon(number, number % 2, number) for number in range(4)), "0-3", **files))
    counts = {name: fact["value"] for name, fact in collect("cpu", ASKED)["cpu.throttle_events"]["each"].items()}
    assert counts == {"package0": 0, "package0 hottest core": 2, "package1": 1, "package1 hottest core": 3}


def test_isolation_by_the_kernel_is_read_and_null_means_none(tree, collect):
    tree(host(TWO_SOCKETS, "0-7", **{f"{CPU}/isolated": "2-7\n", f"{CPU}/nohz_full": "  (null)\n"}))
    facts = collect("cpu")
    assert (value(facts, "isolated"), value(facts, "nohz_full")) == ("2-7", "")


def test_cpusets_of_both_control_group_versions_are_read(tree, collect):
    tree(host(TWO_SOCKETS, "0-7", **{"/sys/fs/cgroup/cpuset/system/cpuset.effective_cpus": "0-1\n"}))
    assert value(collect("cpu"), "cpusets") == {"system": {"cpus": "0-1", "count": 2}}
    tree(
        {
            "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu",
            "/sys/fs/cgroup/system.slice/cpuset.cpus.effective": "0-3\n",
        }
    )
    assert value(collect("cpu"), "cpusets") == {"system.slice": {"cpus": "0-3", "count": 4}}


def test_allowed_cpus_add_up_and_an_empty_value_resets_them(tree, collect):
    folder = "/etc/systemd/system/system.slice.d/"
    tree(
        host(
            TWO_SOCKETS,
            "0-7",
            **{
                folder + "10-a.conf": "[Slice]\nAllowedCPUs=6-7\nAllowedCPUs=\nAllowedCPUs=0-1\n",
                folder + "20-b.conf": "[Slice]\n# AllowedCPUs=5\nAllowedCPUs=3 bad\nAllowedCPUs=3, 4\n",
                "/run/systemd/system.control/init.scope.d/50-AllowedCPUs.conf": "[Scope]\nAllowedCPUs=0\n",
            },
        )
    )
    allowed = value(collect("cpu"), "allowed_cpus")
    assert allowed["system.slice"] == {"cpus": "0-1,3-4", "count": 4, "file": folder + "20-b.conf", "line": 4}
    assert allowed["init.scope"]["cpus"] == "0"


def test_thread_settings_are_found_where_they_hold_for_all(tree, collect):
    tree(
        host(
            TWO_SOCKETS,
            "0-7",
            **{
                "/etc/environment": 'PATH="/bin"\nOMP_NUM_THREADS="4"\n# MKL_NUM_THREADS=1\n',
                "/etc/profile.d/a.sh": '[ -z "$OMP_NUM_THREADS" ] && export KMP_AFFINITY=granularity=fine,compact,1,0\n',
                "/etc/profile.d/b.csh": "setenv MKL_NUM_THREADS 8\nunset OMP_PLACES\n",
                "/etc/security/pam_env.conf": "OMP_PROC_BIND DEFAULT=true\n",
                "/etc/systemd/system.conf": '[Manager]\nDefaultEnvironment="OMP_NUM_THREADS=1" "A=b"\n',
                "/etc/profile.d/README": "OMP_NUM_THREADS=9\n",
            },
        )
    )
    assert value(collect("cpu"), "thread_settings") == {
        "/etc/environment:2 OMP_NUM_THREADS": "4",
        "/etc/security/pam_env.conf:1 OMP_PROC_BIND": "true",
        "/etc/systemd/system.conf:2 OMP_NUM_THREADS": "1",
        "/etc/profile.d/a.sh:1 KMP_AFFINITY": "granularity=fine,compact,1,0",
        "/etc/profile.d/b.csh:1 MKL_NUM_THREADS": "8",
    }


RAPL, HWMON = "/sys/class/powercap/intel-rapl:0/", "/sys/class/hwmon/"
ZONE = {
    RAPL + "name": "package-0\n",
    RAPL + "enabled": "1\n",
    RAPL + "constraint_0_name": "short_term\n",
    RAPL + "constraint_0_power_limit_uw": "900000000\n",
    RAPL + "constraint_1_name": "long_term\n",
    RAPL + "constraint_1_power_limit_uw": "250000000\n",
    RAPL + "constraint_1_max_power_uw": "350000000\n",
    RAPL + "intel-rapl:0:0/name": "dram\n",
}


def power_limits(tree, files):
    tree(files)
    return cpu_power.limits()


def test_the_power_limit_of_a_package_is_that_of_its_long_term(tree):
    assert power_limits(tree, ZONE) == {
        "value": {"package-0 (intel-rapl:0)": {"limit_uw": 250000000, "max_uw": 350000000}}
    }


@pytest.mark.parametrize("lacking", [{"enabled": "0\n"}, {"constraint_1_max_power_uw": "0\n"}, {"name": "psys\n"}])
def test_a_zone_that_limits_nothing_has_no_limit(tree, lacking):
    assert "absent" in power_limits(tree, {**ZONE, **{RAPL + name: text for name, text in lacking.items()}})


def test_limits_of_amd_and_grace_come_from_their_power_meters(tree):
    grace, amd = HWMON + "hwmon1/", HWMON + "hwmon3/"
    files = {grace + "name": "power_meter\n", grace + "device/power1_oem_info": "Grace Power Socket 0\n"}
    files |= {grace + "device/power1_cap": "200000000\n", grace + "device/power1_cap_max": "300000000\n"}
    files |= {
        amd + "name": "amd_hsmp_hwmon\n",
        amd + "power1_cap": "400000000\n",
        amd + "power1_cap_max": "500000000\n",
    }
    files |= {
        HWMON + "hwmon4/name": "amdgpu\n",
        HWMON + "hwmon4/power1_cap": "1\n",
        HWMON + "hwmon4/power1_cap_max": "2\n",
    }
    assert power_limits(tree, files)["value"] == {
        "Grace Power Socket 0 (hwmon1)": {"limit_uw": 200000000, "max_uw": 300000000},
        "amd_hsmp_hwmon (hwmon3)": {"limit_uw": 400000000, "max_uw": 500000000},
    }


def test_a_limit_that_may_not_be_read_is_unread(tree, monkeypatch):
    def denied(path, *_):
        raise PermissionError(13, "Permission denied", path)

    tree(ZONE)
    monkeypatch.setattr(cpu_power, "_number", denied)
    assert "permission denied" in read.tried(cpu_power.limits)["unread"]
