"""Which line decides at the next boot. The expectations were seen from systemd 252's own tools."""

import errno
import time

import pytest

from nodetune.probe import read

NAME = "kernel.domainname"
PATH = "/sys/kernel/mm/ksm/run"


def sysctl(tree, collect, files, name=NAME):
    tree(files)
    return collect("persisted", ["sysctl." + name])["persisted.sysctl." + name]


def tmpfiles(tree, collect, files):
    tree(files)
    return collect("persisted", ["tmpfiles." + PATH])["persisted.tmpfiles." + PATH]


def test_no_file_is_absent(tree, collect):
    assert "absent" in sysctl(tree, collect, {})
    assert "absent" in tmpfiles(tree, collect, {})


def test_the_last_file_by_name_wins_whatever_its_folder(tree, collect):
    files = {"/etc/sysctl.d/10-a.conf": f"{NAME}=etc\n", "/usr/lib/sysctl.d/50-b.conf": f"# c\n\n{NAME} = vendor\n"}
    assert sysctl(tree, collect, files) == {
        "value": {"value": "vendor", "file": "/usr/lib/sysctl.d/50-b.conf", "line": 3}
    }


def test_the_last_line_of_a_file_wins(tree, collect):
    files = {"/etc/sysctl.d/1.conf": "vm.swappiness=10\nvm.swappiness=20\n"}
    assert sysctl(tree, collect, files, "vm.swappiness")["value"] == {
        "value": 20,
        "file": "/etc/sysctl.d/1.conf",
        "line": 2,
    }


def test_a_file_in_etc_replaces_the_vendor_s_of_the_same_name(tree, collect):
    files = {"/usr/lib/sysctl.d/50-x.conf": f"{NAME}=vendor\n", "/etc/sysctl.d/50-x.conf": "vm.swappiness=1\n"}
    assert "absent" in sysctl(tree, collect, files)


def test_a_link_to_dev_null_masks_the_vendor_s_file(tree, collect):
    files = {
        "/dev/null": "",
        "/usr/lib/sysctl.d/50-x.conf": f"{NAME}=vendor\n",
        "/etc/sysctl.d/50-x.conf": "-> ../../dev/null",
    }
    assert "absent" in sysctl(tree, collect, files)


def test_a_link_to_sysctl_conf_is_read_under_the_link_s_name(tree, collect):
    files = {
        "/etc/sysctl.conf": f"{NAME}=old\n",
        "/etc/sysctl.d/99-sysctl.conf": "-> ../sysctl.conf",
        "/etc/sysctl.d/90-a.conf": f"{NAME}=a\n",
    }
    assert sysctl(tree, collect, files)["value"]["file"] == "/etc/sysctl.d/99-sysctl.conf"


def test_a_missing_suffix_and_sysctl_conf_alone_do_not_count(tree, collect):
    assert "absent" in sysctl(tree, collect, {"/etc/sysctl.d/README": f"{NAME}=x\n", "/etc/sysctl.conf": f"{NAME}=x\n"})


def test_a_name_in_full_beats_a_pattern_that_stands_later(tree, collect):
    files = {"/etc/sysctl.d/1.conf": f"{NAME}=exact\nkernel.domainnam?=pattern\n"}
    assert sysctl(tree, collect, files)["value"]["value"] == "exact"


def test_among_patterns_the_last_wins(tree, collect):
    files = {"/etc/sysctl.d/1.conf": "kernel.dom*=one\nkernel.d?mainname=two\n"}
    assert sysctl(tree, collect, files)["value"]["value"] == "two"


def test_a_pattern_does_not_reach_across_dots(tree, collect):
    assert "absent" in sysctl(tree, collect, {"/etc/sysctl.d/1.conf": "kernel*name=x\n"})
    assert "value" in sysctl(tree, collect, {"/etc/sysctl.d/2.conf": "*.domainname=x\n"})


def test_a_leading_dash_only_forgives_errors(tree, collect):
    assert sysctl(tree, collect, {"/etc/sysctl.d/1.conf": f"-{NAME}=dash\n"})["value"]["value"] == "dash"


def test_a_dash_shields_a_name_from_patterns(tree, collect):
    assert "absent" in sysctl(tree, collect, {"/etc/sysctl.d/1.conf": f"-{NAME}\nkernel.dom*=pattern\n"})
    assert "absent" in sysctl(tree, collect, {"/etc/sysctl.d/1.conf": f"{NAME}=exact\n-{NAME}\n"})
    assert "value" in sysctl(tree, collect, {"/etc/sysctl.d/1.conf": f"-{NAME}\n{NAME}=exact\n"})


def test_slashes_and_dots_name_the_same_parameter(tree, collect):
    assert "value" in sysctl(tree, collect, {"/etc/sysctl.d/1.conf": "kernel/domainname=x\n"})
    name = "net.ipv4.conf.eth0/200.rp_filter"
    assert "value" in sysctl(tree, collect, {"/etc/sysctl.d/1.conf": "net/ipv4/conf/eth0.200/rp_filter=2\n"}, name)
    assert "value" in sysctl(tree, collect, {"/etc/sysctl.d/1.conf": name + "=2\n"}, name)


def test_comments_do_not_count_but_text_after_a_value_does(tree, collect):
    files = {"/etc/sysctl.d/1.conf": f"; {NAME}=a\n# {NAME}=b\n{NAME}=c # note\n"}
    assert sysctl(tree, collect, files)["value"]["value"] == "c # note"


def test_a_file_that_cannot_be_read_leaves_the_winner_unknown(tree, collect, monkeypatch):
    tree({"/etc/sysctl.d/1.conf": f"{NAME}=x\n"})

    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(read, "text", denied)
    fact = collect("persisted", ["sysctl." + NAME])["persisted.sysctl." + NAME]
    assert fact == {"unread": "/etc/sysctl.d/1.conf: permission denied: needs root (--become)"}


def test_of_tmpfiles_lines_of_one_path_the_earliest_counts(tree, collect):
    files = {
        "/usr/lib/tmpfiles.d/10-vendor.conf": f"w {PATH} - - - - 1\n",
        "/etc/tmpfiles.d/50-ours.conf": f"w {PATH} - - - - 0\n",
    }
    assert tmpfiles(tree, collect, files)["value"] == {
        "value": 1,
        "file": "/usr/lib/tmpfiles.d/10-vendor.conf",
        "line": 1,
    }


def test_appending_lines_need_a_first_one_that_appends(tree, collect):
    first, second = f"{PATH} - - - - 1\n", f"w+ {PATH} - - - - 2\n"
    assert tmpfiles(tree, collect, {"/etc/tmpfiles.d/1.conf": "w " + first + second})["value"]["value"] == 1
    assert tmpfiles(tree, collect, {"/etc/tmpfiles.d/1.conf": "w+ " + first + second})["value"]["value"] == 2


def test_a_pattern_and_a_full_path_are_written_in_order(tree, collect):
    exact, pattern = f"w {PATH} - - - - 1\n", "w /sys/kernel/mm/ksm/* - - - - 2\n"
    assert tmpfiles(tree, collect, {"/etc/tmpfiles.d/1.conf": exact + pattern})["value"]["value"] == 2
    assert tmpfiles(tree, collect, {"/etc/tmpfiles.d/1.conf": pattern + exact})["value"]["value"] == 1


def test_only_writing_lines_count_and_values_may_have_blanks(tree, collect):
    files = {"/etc/tmpfiles.d/1.conf": f"z {PATH} 0644 root root - x\nw! {PATH} - - - - a b\n"}
    assert tmpfiles(tree, collect, files)["value"]["value"] == "a b"


TUNED = {
    "/etc/sysctl.conf": f"# ours\n{NAME} = late\n",
    "/etc/sysctl.d/zz-nodetune.conf": f"{NAME} = ours\n",
    "/etc/tuned/active_profile": "site\n",
    "/etc/tuned/site/tuned.conf": "[sysctl]\nvm.swappiness=10\n",
    "/etc/systemd/system/multi-user.target.wants/tuned.service": "-> /usr/lib/systemd/system/tuned.service",
}
LATE = {"value": "late", "file": "/etc/sysctl.conf", "line": 2}


def test_tuned_reads_sysctl_conf_after_every_file(tree, collect):
    assert sysctl(tree, collect, TUNED)["value"] == LATE


@pytest.mark.parametrize(
    "without",
    [
        {"/etc/tuned/tuned-main.conf": "reapply_sysctl = 0\n"},
        {"/etc/tuned/site/tuned.conf": "[vm]\ntransparent_hugepages=never\n"},
        {"/etc/tuned/active_profile": ""},
    ],
)
def test_without_tuned_s_second_reading_sysctl_d_decides(tree, collect, without):
    assert sysctl(tree, collect, {**TUNED, **without})["value"]["value"] == "ours"


def test_a_tuned_that_does_not_start_at_boot_reads_nothing(tree, collect):
    files = {path: text for path, text in TUNED.items() if "wants" not in path}
    assert sysctl(tree, collect, files)["value"]["value"] == "ours"


def test_the_lines_of_sysctl_conf_are_told_by_name(tree, collect):
    tree({"/etc/sysctl.conf": f"{NAME}=old\n#{NAME}=x\n-{NAME} = late\nbroken\n"})
    told = collect("persisted", ["sysctl_conf"])["persisted.sysctl_conf"]
    assert told == {"value": {NAME: {**LATE, "line": 3}}}


@pytest.mark.parametrize(("since", "told"), [(3600, True), (-3600, False)])
def test_a_file_that_is_older_than_the_boot_was_read_by_it(tree, collect, since, told):
    boot = f"cpu 1 2\nbtime {int(time.time()) + since}\n"
    tree(
        {
            "/proc/stat": boot,
            "/etc/sysctl.d/a.conf": "vm.swappiness = 10\n",
            "/etc/tmpfiles.d/a.conf": "w /sys/x - - - - 1\n",
        }
    )
    facts = collect("persisted", ["sysctl.vm.swappiness", "tmpfiles./sys/x"])
    assert [fact["value"].get("at_boot", False) for fact in facts.values()] == [told, told]
