"""Site files for some hosts: groups and hosts, patterns, several files; the nearest value counts."""

import pytest

from nodetune.api.predicates import Equals
from nodetune.config import profile, site, site_lint
from nodetune.foundation.yaml_lines import FileError

RANKS = {
    "gpu01": (("all", 0, 1), ("gpu", 1, 1), ("h200", 2, 1), ("rack1", 1, 1)),
    "gpu02": (("all", 0, 1), ("gpu", 1, 1), ("rack2", 1, 10)),
    "login1": (("all", 0, 1), ("ungrouped", 1, 1)),
}
WAIVER = "{id: swap-in-use, reason: r, owner: o, until: 2030-01-01, "


@pytest.fixture
def files(tmp_path):
    def write(*texts, ranks=RANKS):
        paths = [tmp_path / f"{number}.yml" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        found = site.read(paths)
        site.expect(found, ranks)
        return found

    return write


def judged(found, host, check="swappiness-high"):
    resolved = profile.resolve(("base",), site.of_host(found, host))
    return {each.id: each for each in resolved.checks}.get(check)


def swappiness(**scopes):
    """A site file with one value of a check for each scope: everywhere=…, groups__gpu=…, hosts__gpu01=…."""
    text = ""
    for scope, value in scopes.items():
        kind, _, name = scope.partition("__")
        change = f"swappiness-high: {{accept: {value}, set: {value}}}"
        text += f"{kind}:\n  {name}:\n    checks:\n      {change}\n" if name else f"checks:\n  {change}\n"
    return text


@pytest.mark.parametrize(
    ("host", "value"), [("gpu01", 4), ("gpu02", 2), ("login1", 1)], ids=["host", "group", "all hosts"]
)
def test_the_value_nearest_to_a_host_counts(files, host, value):
    found = files(swappiness(everywhere=1, groups__gpu=2, hosts__gpu01=4))
    assert judged(found, host).accept == Equals(value)


def test_a_child_group_counts_over_its_parent(files):
    text = "groups:\n  h200: {checks: {swappiness-high: {set: 5}}}\n  gpu: {checks: {swappiness-high: {set: 2}}}\n"
    found = files(text)
    assert (judged(found, "gpu01").set, judged(found, "gpu02").set) == (5, 2)


def test_a_group_with_a_higher_priority_counts_over_its_equals(files):
    text = "groups:\n  rack2: {checks: {swappiness-high: {set: 5}}}\n  gpu: {checks: {swappiness-high: {set: 2}}}\n"
    assert judged(files(text), "gpu02").set == 5


def test_equal_groups_that_contradict_each_other_are_named(files):
    text = "groups:\n  rack1: {checks: {swappiness-high: {set: 5}}}\n  gpu: {checks: {swappiness-high: {set: 2}}}\n"
    with pytest.raises(FileError) as caught:
        files(text)
    told = str(caught.value)
    assert "line 2 (group rack1)" in told
    assert "line 3 (group gpu)" in told
    assert "contradict each other on swappiness-high for gpu01" in told


@pytest.mark.parametrize(
    "more",
    [
        "  h200: {checks: {swappiness-high: {set: 7}}}\n",
        "hosts:\n  gpu01: {checks: {swappiness-high: {set: 7}}}\n",
    ],
)
def test_a_nearer_value_settles_a_contradiction(files, more):
    text = "groups:\n  rack1: {checks: {swappiness-high: {set: 5}}}\n  gpu: {checks: {swappiness-high: {set: 2}}}\n"
    assert judged(files(text + more), "gpu01").set == 7


def test_equal_groups_with_different_settings_both_count(files):
    text = (
        "groups:\n  rack1: {checks: {swappiness-high: {set: 5}}}\n  gpu: {checks: {swappiness-high: {severity: low}}}\n"
    )
    found = judged(files(text), "gpu01")
    assert (found.set, found.severity) == (5, "low")


def test_a_group_may_be_off_where_others_are_judged(files):
    found = files("groups:\n  h200: {checks: {swappiness-high: off}}\n")
    assert judged(found, "gpu01") is None
    assert judged(found, "gpu02") is not None


def test_a_host_of_no_inventory_is_in_no_group(files):
    found = files(swappiness(everywhere=1, groups__gpu=2), ranks={"gpu01": None})
    assert judged(found, "gpu01").set == 1
    found = files(swappiness(hosts__gpu01=4), ranks={"gpu01": None})
    assert judged(found, "gpu01").set == 4


def test_a_later_file_wins_for_the_same_hosts(files):
    found = files(swappiness(everywhere=1, groups__gpu=2), swappiness(everywhere=8, groups__rack1=9))
    assert [judged(found, host).set for host in ("gpu01", "gpu02", "login1")] == [9, 2, 8]


def test_a_site_check_may_be_off_for_all_and_on_for_a_group(files):
    added = "add:\n  - {id: site-a, sysctl: a.b, accept: 1}\nchecks:\n  site-a: off\n"
    found = files(added + "groups:\n  h200: {checks: {site-a: on}}\n")
    assert judged(found, "gpu01", "site-a") is not None
    assert judged(found, "gpu02", "site-a") is None


def test_contradicting_host_entries_are_an_error(files):
    text = "hosts:\n  gpu0*: {checks: {swappiness-high: off}}\n  gpu01: {checks: {swappiness-high: on}}\n"
    with pytest.raises(FileError, match="contradict each other on swappiness-high for gpu01.*: remove one$"):
        files(text)


def test_several_files_add_up(files):
    found = files(
        f"profile: inference\nadd:\n  - {{id: site-a, sysctl: a.b, accept: 1}}\nwaivers:\n  - {WAIVER}hosts: gpu01}}\n",
        f"checks:\n  site-a: {{severity: low}}\nwaivers:\n  - {WAIVER}hosts: gpu02}}\n",
    )
    assert judged(found, "gpu01", "site-a").severity == "low"
    assert [each.hosts for each in found.waivers] == ["gpu01", "gpu02"]
    assert found.profile == ("inference",)
    assert profile.resolve(("base",), site.of_host(found, "gpu01")).name == "0+1"


def test_a_waiver_for_a_group_covers_its_hosts_only(files):
    found = files(f"waivers:\n  - {WAIVER}groups: [h200, rack9]}}\n  - {WAIVER}hosts: gpu02}}\n")
    assert [each.hosts for each in site.of_host(found, "gpu01").waivers] == ["*", "gpu02"]
    assert [each.hosts for each in site.of_host(found, "gpu02").waivers] == ["gpu02"]


def test_hosts_of_the_same_groups_share_one_site_file(files):
    found = files(swappiness(groups__gpu=2), ranks={"a": RANKS["gpu02"], "b": RANKS["gpu02"]})
    assert site.of_host(found, "a") is site.of_host(found, "b")


def test_a_pattern_names_many_checks(files):
    found = files("checks:\n  nccl-*: off\n  swap*: {severity: info}\n")
    assert judged(found, "gpu01", "nccl-tuning-forced") is None
    assert judged(found, "gpu01", "swap-in-use").severity == "info"


def test_a_check_that_is_named_counts_over_a_pattern(files):
    found = files(
        "checks:\n  swappiness-high: {set: 9}\n  swap*: {severity: info}\n  swap-in-use: on\n  sw?p-in-use: off\n"
    )
    assert (judged(found, "gpu01").set, judged(found, "gpu01").severity) == (9, "low")
    assert judged(found, "gpu01", "swap-in-use") is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("checks:\n  nope-*: off\n", "line 2: no check matches 'nope-*'"),
        ("checks:\n  swap*: {set: 1}\n", "line 2: a pattern takes on, off, nothing, severity and gate"),
        (
            "checks:\n  swap*: off\n  swappi*: on\n",
            "line 3: swappi* contradicts the pattern in line 2 on swappiness-high",
        ),
        ("groups:\n  gpu: {swap-in-use: off}\n", "line 2: unknown key 'swap-in-use'; there are: checks"),
        (
            "groups:\n  gpu: {a: 1, checks: {swap-in-use: 5, b: 6}}\n",
            "line 2: b must be a mapping, on, off, or nothing",
        ),
        ("groups:\n  gpu:\n", "line 2: gpu must be a mapping with checks"),
        ("groups: [gpu]\n", "line 1: groups must be a mapping of names to their checks"),
        ("groups:\n  gpu: {checks: {swap-in-usee: off}}\n", "line 2: unknown check 'swap-in-usee'"),
        ("hosts:\n  gpu[1: {checks: {swap-in-use: off}}\n", "line 2: hosts: 'gpu[1' is not a valid node set"),
        ("hosts:\n  '@gpu': {checks: {swap-in-use: off}}\n", "line 2: hosts: '@gpu' is not a host"),
        (
            f"waivers:\n  - {WAIVER}groups: a, hosts: b}}\n",
            "line 2: an item of waivers must have exactly one of hosts, groups",
        ),
        (f"waivers:\n  - {WAIVER}hosts: '@gpu'}}\n", "line 2: hosts: '@gpu' is not a host: write an inventory group"),
        ("add:\n  - {id: site-a, file: etc/motd, accept: x}\n", "line 2: file must be a full path, such as /etc/motd"),
        (
            "add:\n  - {id: site-a, sysfs: /sys/a, accept: off}\n",
            "line 2: accept must have the content of the file: write on and off in quo",
        ),
        ("add:\n  - {id: site-a, sysfs: /sys/../etc/x, accept: 1}\n", "line 2: sysfs must be a file under /sys"),
        ("add:\n  - {id: site-a, sysfs: /etc/x, accept: 1}\n", "line 2: sysfs must be a file under /sys"),
        (
            "add:\n  - {id: site-a, fact: gpu.no_such, accept: 1}\n",
            "line 2: unknown fact 'gpu.no_such': nodetune facts",
        ),
        (
            "add:\n  - {id: site-a, fact: gpu.count, accept: 8, set: 8}\n",
            "line 2: a fact is judged but not fixed: remove `set`",
        ),
        (
            "add:\n  - {id: site-a, sysctl: vm.swappiness, accept: 1, set: 1, manual: Pray.}\n",
            "line 2: manual is for fact, file, xid, which nodetune does not fix: remove it",
        ),
        ("add:\n  - {id: site-a, sysctl: vm/x, accept: 1}\n", "line 2: sysctl must be the name of a kernel parameter"),
        (
            "add:\n  - {id: site-a, sysctl: ..etc.x, accept: 1}\n",
            "line 2: sysctl must be the name of a kernel parameter",
        ),
        ("add:\n  - {id: site-a, kernel_arg: a=1, accept: 1}\n", "line 2: kernel_arg must be the name of a kernel arg"),
    ],
)
def test_what_cannot_be_meant_is_refused(files, text, says):
    with pytest.raises(FileError) as caught:
        files(text)
    assert says in str(caught.value)


def test_all_errors_of_a_file_are_found(files):
    text = (
        "chekcs: {}\nchecks:\n  swap-in-usee: off\n  swap-in-use: {severity: bad, accpet: 1}\n  swappiness-high: "
        "{accept: {fact: no.x}}\n"
        "profile: nope\nadd:\n  - {id: site-a, service: x, accept: up}\n  - {id: site-a}\n  - "
        "{id: mine, file: a, accept: 1}\n"
        f"waivers:\n  - {{id: nope, hosts: a, reason: r, owner: o, until: 2030-02-31}}\n  - {WAIVER}hosts: 'gpu[1'}}\n"
    )
    with pytest.raises(FileError) as caught:
        files(text)
    lines = [each.line for each in caught.value.problems]
    assert lines == [1, 3, 4, 4, 5, 6, 8, 9, 9, 10, 10, 12, 12, 13], [str(each) for each in caught.value.problems]
    assert str(caught.value).endswith("more: nodetune profile validate " + str(caught.value).split(" line ")[0] + ")")


@pytest.mark.parametrize("word", ["manual", "repair"])
def test_a_check_of_a_site_says_who_must_act(files, word):
    found = files(f"add:\n  - {{id: site-a, fact: gpu.count, accept: 8, {word}: Seat it again.}}\n")
    remedy = judged(found, "gpu01", "site-a").remedy
    assert (remedy.steps, remedy.repair) == ("Seat it again.", word == "repair")


def linted(tmp_path, text, today="2026-01-01"):
    path = tmp_path / "site.yml"
    path.write_text(text)
    found, _ = site_lint.problems([path], today, RANKS)
    return [(each.line, each.text.partition(": ")[2], each.is_error) for each in found]


def test_a_waiver_that_ended_is_a_warning(tmp_path):
    waiver = "waivers:\n  - {id: swap-in-use, hosts: gpu01, reason: r, owner: o, until: 2025-12-31}\n"
    said = "the waiver for swap-in-use ended on 2025-12-31: its findings count again; renew or remove it"
    assert linted(tmp_path, waiver) == [(2, said, False)]
    assert linted(tmp_path, waiver, today="2025-12-31") == []


def test_a_waiver_of_hosts_or_groups_that_the_inventory_lacks_is_named(tmp_path):
    waiver = "  - {{id: swap-in-use, {}, reason: r, owner: o, until: 2030-12-31}}\n"
    given = ("hosts: gpu09", "hosts: 'gpu[01,09]'", "groups: rack77", "groups: [gpu, rack77]", "hosts: gpu01")
    found = linted(tmp_path, "waivers:\n" + "".join(map(waiver.format, given)))
    assert [(line, is_error) for line, _, is_error in found] == [(2, True), (3, False), (4, True), (5, True)]
    assert [text for _, text, _ in found][:2] == ["the inventory has no gpu09"] * 2
    assert all("rack77" in text for _, text, _ in found[2:])
