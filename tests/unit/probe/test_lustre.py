"""lustre.*: settings of Lustre clients, told for each file system."""

OSC = "/sys/fs/lustre/osc/data-OST{:04x}-osc-ffff9f0e6533a000/"
LLITE = "/sys/fs/lustre/llite/data-ffff9f0e6533a000/"


def target(number, **settings):
    return {OSC.format(number) + name: text + "\n" for name, text in settings.items()}


def test_a_host_without_lustre_has_no_settings(tree, collect):
    tree({"/sys/fs/": None})
    assert set(collect("lustre")) == {"lustre.osc", "lustre.llite"}
    assert all("absent" in fact for fact in collect("lustre").values())


def test_targets_of_a_file_system_are_told_by_the_values_of_any(tree, collect):
    tree(
        {
            **target(0, max_rpcs_in_flight="8", max_dirty_mb="2000", checksums="1"),
            **target(255, max_rpcs_in_flight="32", max_dirty_mb="2000.5"),
            LLITE + "max_read_ahead_mb": "64.00\n",
            "/sys/fs/lustre/osc/num_refs": "4\n",
        }
    )
    facts = collect("lustre")
    assert facts["lustre.osc"]["value"] == {
        "data": {
            "folder": "/sys/fs/lustre",
            "devices": 2,
            "max_rpcs_in_flight": [8, 32],
            "max_pages_per_rpc": [],
            "max_dirty_mb": [2000],
            "checksums": [1],
        }
    }
    assert facts["lustre.llite"]["value"]["data"]["max_read_ahead_mb"] == [64]


def test_older_releases_keep_the_files_under_proc(tree, collect):
    tree({OSC.format(0).replace("/sys", "/proc") + "max_rpcs_in_flight": "8\n"})
    assert collect("lustre")["lustre.osc"]["value"]["data"]["folder"] == "/proc/fs/lustre"


def test_what_is_no_number_is_not_told(tree, collect):
    tree(target(0, max_rpcs_in_flight="inf", max_dirty_mb="9" * 400, checksums="-1"))
    found = collect("lustre")["lustre.osc"]["value"]["data"]
    assert [found[name] for name in ("max_rpcs_in_flight", "max_dirty_mb", "checksums")] == [[], [], []]
