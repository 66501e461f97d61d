"""updates.*: apt's and dnf's automatic updates, and whether they leave the driver alone."""

STATUS = """\
Package: nvidia-driver-550
Status: install ok installed
Version: 550.54

Package: libcuda1
Status: hold ok installed

Package: libnvidia-compute-535
Status: deinstall ok config-files

Package: vim
Status: install ok installed
"""
APT = {
    "/usr/bin/unattended-upgrade": "#!",
    "/var/lib/dpkg/status": STATUS,
    "/etc/apt/apt.conf.d/20auto-upgrades": 'APT::Periodic::Unattended-Upgrade "1";\n',
}


def apt(collect):
    return collect("updates")["updates.apt"]["value"]


def test_installed_driver_packages_show_what_keeps_them(tree, collect):
    tree(APT)
    seen = apt(collect)
    assert seen["enabled"] is True
    assert seen["driver_packages"] == {"nvidia-driver-550": "", "libcuda1": "hold"}


def test_a_blacklist_in_a_block_keeps_its_prefixes(tree, collect):
    tree(
        {
            **APT,
            "/etc/apt/apt.conf.d/50x": 'Unattended-Upgrade::Package-Blacklist {\n // "vim";\n "nvidia-"; "driver";\n};\n',
        }
    )
    seen = apt(collect)
    assert seen["blacklist"] == ["nvidia-", "driver"]
    assert seen["driver_packages"]["nvidia-driver-550"] == "nvidia-"


def test_later_files_win_and_add_to_lists(tree, collect):
    tree(
        {
            **APT,
            "/etc/apt/apt.conf.d/50x": 'Unattended-Upgrade { Package-Blacklist { "a"; }; Automatic-Reboot "false"; };',
            "/etc/apt/apt.conf.d/60y": 'unattended-upgrade::automatic-reboot true;\nUnattended-Upgrade::Package-Blacklist:: "b // c";',
            "/etc/apt/apt.conf.d/70z.dpkg-old": 'APT::Periodic::Unattended-Upgrade "0";',
        }
    )
    seen = apt(collect)
    assert (seen["reboots"], seen["blacklist"], seen["enabled"]) == (True, ["a", "b // c"], True)


def test_a_cleared_list_is_empty(tree, collect):
    tree(
        {
            **APT,
            "/etc/apt/apt.conf.d/50x": 'Unattended-Upgrade::Package-Blacklist { "nvidia-"; };',
            "/etc/apt/apt.conf.d/60y": "#clear Unattended-Upgrade::Package-Blacklist;",
        }
    )
    assert apt(collect)["blacklist"] == []


def test_a_host_without_either_updater_has_neither(tree, collect):
    tree({"/etc/": None})
    facts = collect("updates")
    assert "absent" in facts["updates.apt"]
    assert "absent" in facts["updates.dnf"]


def test_dnf_shows_what_is_applied_and_left_out(tree, collect):
    tree(
        {
            "/etc/dnf/automatic.conf": "[commands]\napply_updates = yes\nreboot = when-needed\n[base]\nexcludepkgs=kernel*\n",
            "/etc/dnf/dnf.conf": "[main]\nexclude=foo, nvidia-driver*\n",
            "/usr/bin/nvidia-smi": "",
        }
    )
    seen = collect("updates")["updates.dnf"]["value"]
    assert (seen["enabled"], seen["reboots"]) == (True, True)
    assert seen["driver_packages"] == {"nvidia-driver": "nvidia-driver*"}


def test_a_version_lock_keeps_the_driver(tree, collect):
    tree(
        {
            "/etc/dnf/automatic.conf": "[commands]\napply_updates = yes\n",
            "/usr/bin/nvidia-smi": "",
            "/etc/dnf/plugins/versionlock.list": "# locked\nnvidia-driver-3:550.54.15-1.el9.*\n",
        }
    )
    assert collect("updates")["updates.dnf"]["value"]["driver_packages"] == {"nvidia-driver": "nvidia-driver"}


def test_a_driver_of_the_run_installer_is_none_of_dnfs(tree, collect):
    tree(
        {
            "/etc/dnf/automatic.conf": "[commands]\napply_updates = yes\n",
            "/usr/bin/nvidia-smi": "",
            "/usr/bin/nvidia-uninstall": "",
        }
    )
    assert collect("updates")["updates.dnf"]["value"]["driver_packages"] == {}
