"""Files under /sys that a site's own checks name."""

CONTROL, LEVEL, CHOICE = "/sys/devices/system/cpu/smt/control", "/sys/a/level", "/sys/kernel/mm/lru_gen/x"


def test_a_number_a_word_and_a_choice_are_read_as_they_are_set(tree, collect):
    tree({CONTROL: "off\n", LEVEL: "12\n", CHOICE: "always [madvise] never\n"})
    assert collect("sysfs", [CONTROL, LEVEL, CHOICE]) == {
        f"sysfs.{CONTROL}": {"value": "off"},
        f"sysfs.{LEVEL}": {"value": 12},
        f"sysfs.{CHOICE}": {"value": "madvise"},
    }


def test_what_is_not_there_is_absent_and_no_other_file_is_read(tree, collect):
    tree({"/sys/": None, "/etc/shadow": "secret"})
    assert "absent" in collect("sysfs", [CONTROL])[f"sysfs.{CONTROL}"]
    for path in ("/etc/shadow", "/sys/../etc/shadow"):
        assert "unread" in collect("sysfs", [path])[f"sysfs.{path}"]
