"""services.*: units by systemctl's words (recorded on Debian 12), and what is read next to them."""

import pytest

from nodetune.probe import clock, processes, read

UNITS = """\
MainPID=35
ExecStart={ path=/usr/bin/nvidia-persistenced ; argv[]=/usr/bin/nvidia-persistenced --user nvpd --no-persistence-mode ; \
ignore_errors=no ; start_time=[Sat 2026-11-21 05:59:46 UTC] ; stop_time=[n/a] ; pid=35 ; code=(null) ; status=0/0 }
TasksMax=28909
Id=nvidia-persistenced.service
Names=nvidia-persistenced.service
LoadState=loaded
ActiveState=active
SubState=running
DropInPaths=/etc/systemd/system/nvidia-persistenced.service.d/x.conf
UnitFileState=enabled
ActiveEnterTimestamp=Sat 2026-11-21 05:59:46 UTC
ActiveEnterTimestampMonotonic=41000000
NRestarts=3

MainPID=0
TasksMax=infinity
Id=nope.service
Names=nope.service
LoadState=not-found
ActiveState=inactive
SubState=dead
DropInPaths=
UnitFileState=
ActiveEnterTimestamp=

MainPID=91
TasksMax=18446744073709551615
Id=ssh.service
Names=ssh.service sshd.service
LoadState=loaded
ActiveState=active
SubState=running
DropInPaths=
UnitFileState=enabled
ActiveEnterTimestamp=

Id=apt-daily-upgrade.timer
Names=apt-daily-upgrade.timer
LoadState=loaded
ActiveState=active
SubState=waiting
DropInPaths=
UnitFileState=enabled
ActiveEnterTimestamp=Sat 2026-11-21 05:59:46 UTC
"""


@pytest.fixture
def systemd(tree, monkeypatch):
    """A host that systemd runs; systemctl and loginctl answer with the given text. Returns the commands that were run."""
    tree({"/run/systemd/system/": None, "/proc/1/comm": "systemd"})

    def answers(output):
        commands = []
        monkeypatch.setattr(read, "find_tool", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(read, "run", lambda command, *_: commands.append(command) or output)
        return commands

    return answers


def test_all_units_cost_one_call(systemd, collect):
    commands = systemd(UNITS)
    collect("services", ["nvidia-persistenced", "nope", "sshd", "apt-daily-upgrade.timer"])
    assert len(commands) == 1
    assert commands[0][-4:] == [
        "nvidia-persistenced.service",
        "nope.service",
        "sshd.service",
        "apt-daily-upgrade.timer",
    ]


def test_a_unit_tells_its_state_flags_and_drop_ins(systemd, collect):
    systemd(UNITS)
    unit = collect("services", ["nvidia-persistenced"])["services.nvidia-persistenced"]["value"]
    assert (unit["active"], unit["enabled"], unit["pid"], unit["tasks_max"]) == ("active", "enabled", 35, 28909)
    assert unit["exec"] == "/usr/bin/nvidia-persistenced --user nvpd --no-persistence-mode"
    assert (unit["restarts"], unit["since_us"]) == (3, 41000000)
    assert unit["drop_ins"] == ["/etc/systemd/system/nvidia-persistenced.service.d/x.conf"]


def test_an_old_systemd_does_not_count_restarts(systemd, collect):
    systemd(UNITS.replace("NRestarts=3\n", ""))
    assert collect("services", ["nvidia-persistenced"])["services.nvidia-persistenced"]["value"]["restarts"] is None


def test_the_running_command_line_is_read_next_to_the_unit(systemd, tree, collect):
    systemd(UNITS)
    tree({"/proc/35/cmdline": "/usr/bin/nvidia-persistenced\0--verbose\0"})
    assert collect("services", ["nvidia-persistenced"])["services.nvidia-persistenced"]["value"]["cmdline"] == (
        "/usr/bin/nvidia-persistenced --verbose"
    )


def test_a_unit_that_is_not_installed_is_absent(systemd, collect):
    systemd(UNITS)
    assert collect("services", ["nope"])["services.nope"] == {"absent": "not installed"}


def test_an_alias_shows_the_unit_behind_it(systemd, collect):
    systemd(UNITS)
    unit = collect("services", ["sshd"])["services.sshd"]["value"]
    assert (unit["pid"], unit["tasks_max"]) == (91, "unlimited")


def test_a_name_that_is_no_unit_never_reaches_systemctl(systemd, collect):
    commands = systemd(UNITS)
    assert collect("services", ["--failed x"])["services.--failed x"] == {"absent": "not a unit name"}
    assert commands == []


def test_systemctl_failing_makes_units_unread_with_its_reason(systemd, collect, monkeypatch):
    systemd("")

    def fails(*_):
        raise OSError(110, "systemctl did not answer within 4 s")

    monkeypatch.setattr(read, "run", fails)
    assert collect("services", ["ssh"])["services.ssh"] == {"unread": "systemctl did not answer within 4 s"}


def test_a_host_without_systemd_has_no_units(tree, collect):
    tree({"/proc/1/comm": "init"})
    facts = collect("services", ["ssh", "running", "remove_ipc"])
    assert {str(fact) for fact in facts.values()} == {"{'absent': 'systemd does not run this host'}"}


def test_daemons_are_found_by_name_long_ones_by_their_command(tree):
    tree(
        {
            "/proc/1/comm": "systemd",
            "/proc/40/comm": "slurmd",
            "/proc/40/status": "Uid:\t0\t0\t0\t0\n",
            "/proc/41/comm": "slurmstepd",
            "/proc/41/status": "Uid:\t0\t0\t0\t0\n",
            "/proc/42/comm": "nvidia-cuda-mps",
            "/proc/42/status": "Uid:\t0\t0\t0\t0\n",
            "/proc/42/cmdline": "/usr/bin/nvidia-cuda-mps-control\0-d\0",
        }
    )
    assert processes.running() == {"slurmd": [40], "nvidia-cuda-mps-control": [42]}


@pytest.mark.parametrize(
    ("uid", "program", "found"),
    [
        (0, "/usr/bin/kubelet", True),
        (998, "/usr/bin/kubelet", True),
        (1000, "/usr/bin/kubelet", False),
        (0, "/bin/sh", False),
    ],
)
def test_a_daemon_is_told_by_its_owner_and_its_program(tree, uid, program, found):
    """The real user counts: a setuid program of anyone's has root as its effective user."""
    status = f"Name:\tkubelet\nUid:\t{uid}\t0\t0\t0\n"
    tree(
        {
            "/proc/1/comm": "systemd",
            "/proc/40/comm": "kubelet",
            "/proc/40/status": status,
            "/proc/40/exe": f"-> {program}",
        }
    )
    assert processes.running() == ({"kubelet": [40]} if found else {})


def test_users_start_mps_as_well(tree):
    words = "/usr/bin/nvidia-cuda-mps-control\0-d\0"
    own = {"comm": "nvidia-cuda-mps", "status": "Uid:\t1000\t1000\t1000\t1000\n", "cmdline": words}
    tree({"/proc/1/comm": "systemd", **{f"/proc/42/{name}": text for name, text in own.items()}})
    assert processes.running() == {"nvidia-cuda-mps-control": [42]}


def test_hidden_processes_are_unread_and_not_none(tree, collect):
    tree({"/proc/": None})
    assert "hides" in collect("services", ["processes"])["services.processes"]["unread"]


def test_the_daemon_among_its_children_is_the_child_of_init(tree):
    tree({"/proc/9/stat": "9 (sshd) S 77 9 9 0", "/proc/77/stat": "77 (sshd) S 1 77 77 0"})
    assert processes.daemon([9, 77]) == 77


def test_remove_ipc_is_loginds_and_the_files_say_what_comes(systemd, tree, collect):
    systemd("RemoveIPC=yes\n")
    tree(
        {
            "/etc/systemd/logind.conf": "[Login]\n#RemoveIPC=yes\n",
            "/etc/systemd/logind.conf.d/a.conf": "[Login]\nRemoveIPC=0\n",
        }
    )
    facts = collect("services", ["remove_ipc", "remove_ipc_set"])
    assert facts["services.remove_ipc"] == {"value": "yes"}
    assert facts["services.remove_ipc_set"] == {
        "value": {"value": "no", "file": "/etc/systemd/logind.conf.d/a.conf", "line": 2}
    }


def test_the_default_of_locked_memory_has_the_last_line(tree, collect):
    folder = "/etc/systemd/system.conf.d/"
    assert "absent" in collect("services", ["default_memlock"])["services.default_memlock"]
    tree(
        {
            folder + name: f"[Manager]\nDefaultLimitMEMLOCK={size}\n"
            for name, size in (("a.conf", 1), ("zzz.conf", "64M"))
        }
    )
    found = collect("services", ["default_memlock"])["services.default_memlock"]
    assert found == {"value": {"value": "64M", "file": folder + "zzz.conf", "line": 2}}


def test_a_tuned_profile_has_includes_and_places_of_settings(tree, collect):
    tree(
        {
            "/proc/1/comm": "systemd",
            "/etc/tuned/active_profile": "site\n",
            "/etc/tuned/site/tuned.conf": "[main]\ninclude=hpc-compute\n[sysctl]\nvm.swappiness=5\n",
            "/usr/lib/tuned/hpc-compute/tuned.conf": "[main]\ninclude=latency-performance\n[sysctl]\nvm.swappiness=10\nkernel.numa_balancing=0\n",
            "/usr/lib/tuned/latency-performance/tuned.conf": "[cpu]\ngovernor=performance\n",
        }
    )
    profile = collect("services", ["tuned_profile"])["services.tuned_profile"]["value"]
    assert profile["chain"] == ["site", "hpc-compute", "latency-performance"]
    assert profile["settings"]["sysctl"]["vm.swappiness"] == {"value": "5", "file": "/etc/tuned/site/tuned.conf"}
    assert profile["settings"]["cpu"]["governor"]["file"] == "/usr/lib/tuned/latency-performance/tuned.conf"


def test_where_tuned_looks_for_profiles_and_what_it_applies_last(tree, collect):
    def told(files):
        tree({"/etc/tuned/active_profile": "a", "/etc/tuned/a/tuned.conf": "[main]\n"} | files)
        found = collect("services", ["tuned_profile"])["services.tuned_profile"]["value"]
        return found["home"], found["post_loaded"], found["reapply_sysctl"]

    assert told({}) == ("/etc/tuned", "", True)
    main = "daemon = 1\n# profile_dirs = /x\nreapply_sysctl = 0\n"
    last = {"/etc/tuned/post_loaded_profile": "last\n", "/etc/tuned/tuned-main.conf": main}
    assert told(last) == ("/etc/tuned", "last", False)
    newer = {"/usr/lib/tuned/profiles/b/tuned.conf": ""}
    assert told(newer)[0] == "/etc/tuned/profiles"
    assert told({"/etc/tuned/tuned-main.conf": "profile_dirs = /usr/lib/tuned ; /etc/tuned\n"})[0] == "/etc/tuned"
    assert told({"/etc/tuned/tuned-main.conf": "profile_dirs=/srv/tuned\n"})[0] == ""


def test_comments_and_lists_of_includes_are_read_as_by_tuned(tree, collect):
    profile = "[main]\ninclude=b; c\n[sysctl]\nvm.swappiness=5 # low\nkernel.core_pattern=a#b\n"
    tree({"/etc/tuned/active_profile": "a", "/etc/tuned/a/tuned.conf": profile, "/etc/tuned/c/tuned.conf": "[vm]\n"})
    found = collect("services", ["tuned_profile"])["services.tuned_profile"]["value"]
    assert found["chain"] == ["a", "c"]
    assert {key: each["value"] for key, each in found["settings"]["sysctl"].items()} == {
        "vm.swappiness": "5",
        "kernel.core_pattern": "a#b",
    }


def test_a_profile_that_includes_itself_ends(tree, collect):
    tree({"/etc/tuned/active_profile": "a", "/etc/tuned/a/tuned.conf": "[main]\ninclude=a\n"})
    assert collect("services", ["tuned_profile"])["services.tuned_profile"]["value"]["chain"] == ["a"]


def test_tuned_and_sysctl_conflicts_are_named(tree, collect):
    tree(
        {
            "/etc/tuned/active_profile": "a",
            "/etc/tuned/a/tuned.conf": "[sysctl]\nvm.swappiness=10\nkernel.numa_balancing=0\nnet.core.rmem_max=>4096\n",
            "/etc/sysctl.d/90.conf": "vm.swappiness=1\nkernel.numa_balancing=0\nnet.core.rmem_max=1\n",
            "/proc/sys/vm/swappiness": "1\n",
        }
    )
    assert collect("services", ["tuned_conflicts"])["services.tuned_conflicts"]["value"] == [
        {
            "name": "vm.swappiness",
            "tuned": 10,
            "tuned_file": "/etc/tuned/a/tuned.conf",
            "sysctl": 1,
            "sysctl_file": "/etc/sysctl.d/90.conf",
            "line": 1,
            "running": 1,
        }
    ]


def test_the_clock_is_asked_of_the_real_kernel(collect):
    told = collect("services", ["time_sync"])["services.time_sync"]["value"]
    assert isinstance(told["synchronized"], bool)
    assert told["max_error_us"] >= 0


def test_chrony_counts_where_it_leaves_the_kernel_flag_alone(collect, monkeypatch):
    tracking = (
        "A9FEA97B,169.254.169.123,4,1700000000.1,0.000001,0.000001,0.00001,-5.1,0.0,0.01,0.0003,0.0002,16.1,Normal\n"
    )
    monkeypatch.setattr(
        clock.ctypes, "CDLL", lambda *_, **__: type("C", (), {"adjtimex": staticmethod(_unsynchronized)})
    )
    monkeypatch.setattr(read, "find_tool", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(read, "run", lambda *_: tracking)
    told = collect("services", ["time_sync"])["services.time_sync"]["value"]
    assert (told["synchronized"], told["by"]) == (True, "chrony")


def _unsynchronized(timex):
    timex._obj.status = clock.STA_UNSYNC
    return 5


UFW_RULES = (
    "### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n### tuple ### allow any any 0.0.0.0/0 any 10.0.0.0/8 in\n"
)


def test_a_firewall_shows_the_networks_with_all_ports_open(tree, collect):
    tree(
        {
            "/etc/ufw/ufw.conf": "ENABLED=yes\n",
            "/etc/default/ufw": 'DEFAULT_INPUT_POLICY="DROP"\n',
            "/etc/ufw/user.rules": UFW_RULES,
        }
    )
    assert collect("services", ["firewall"])["services.firewall"] == {"value": {"ufw": ["10.0.0.0/8"]}}


def test_firewalld_zones_that_accept_all_show_their_sources(tree, collect):
    tree(
        {
            "/run/firewalld.pid": "7",
            "/etc/firewalld/zones/trusted.xml": '<zone target="ACCEPT"><source address="10.0.0.0/8"/></zone>',
            "/etc/firewalld/zones/public.xml": '<zone><interface name="eth0"/></zone>',
            "/usr/lib/firewalld/zones/trusted.xml": '<zone target="ACCEPT"/>',
        }
    )
    assert collect("services", ["firewall"])["services.firewall"] == {"value": {"firewalld": ["10.0.0.0/8"]}}


def test_a_switched_off_firewall_is_none(tree, collect):
    tree({"/etc/ufw/ufw.conf": "ENABLED=no\n"})
    assert collect("services", ["firewall"])["services.firewall"] == {"value": {}}


def test_fabric_manager_tells_its_version(collect, monkeypatch):
    monkeypatch.setattr(read, "find_tool", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(read, "run", lambda *_: "Fabric Manager version is : 550.54.15\n")
    assert collect("services", ["fabricmanager_version"])["services.fabricmanager_version"] == {"value": "550.54.15"}


def test_packages_of_nodewright_are_named(tree, collect):
    tree({"/var/lib/": None})
    assert "absent" in collect("services", ["nodewright"])["services.nodewright"]
    tree({"/var/lib/skyhook/tuning-gb300/flags/": None})
    assert collect("services", ["nodewright"])["services.nodewright"] == {"value": ["tuning-gb300"]}


FABRICMANAGER_FILE = """# Fabric Manager Operating Mode
#     0  - Start Fabric Manager in Bare metal or Full pass through virtualization mode
#     1  - Start Fabric Manager in Shared NVSwitch multitenancy mode.
FABRIC_MODE={}

FABRIC_MODE_RESTART=1
"""


def test_the_fabric_mode_is_that_of_fabric_managers_file(tree, collect):
    tree({"/proc/1/comm": "init\n", "/usr/share/nvidia/nvswitch/fabricmanager.cfg": FABRICMANAGER_FILE.format(1)})
    assert collect("services", ["fabric_mode"])["services.fabric_mode"] == {"value": 1}


def test_fabric_manager_in_a_container_has_its_own_file(tree, collect):
    tree(
        {
            "/proc/1/comm": "init\n",
            "/proc/77/comm": "nv-fabricmanage\n",
            "/proc/77/cmdline": "/usr/bin/nv-fabricmanager\0-c\0/run/fm.cfg\0",
            "/proc/77/status": "Uid:\t0\t0\t0\t0\n",
            "/proc/77/root/run/fm.cfg": FABRICMANAGER_FILE.format(2),
            "/usr/share/nvidia/nvswitch/fabricmanager.cfg": FABRICMANAGER_FILE.format(0),
        }
    )
    assert collect("services", ["fabric_mode"])["services.fabric_mode"] == {"value": 2}


def test_a_host_without_fabric_manager_has_no_fabric_mode(tree, collect):
    tree({"/proc/1/comm": "init\n"})
    assert "absent" in collect("services", ["fabric_mode"])["services.fabric_mode"]


def test_imex_channels_show_who_may_write_them(tree, collect):
    root = tree({"/dev/nvidia-caps-imex-channels/channel0": ""})
    (root / "dev/nvidia-caps-imex-channels/channel0").chmod(0o666)
    assert collect("services", ["imex_channels"])["services.imex_channels"] == {"value": {"channel0": "666"}}
