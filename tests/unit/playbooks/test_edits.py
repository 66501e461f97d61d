"""Edits of files that belong to others keep all that they were not asked to change."""

import json

import pytest
from nodetune_host import edits
from nodetune_host.problem import ChangeError
from nodetune_host.resources import edit, file

FSTAB = (
    "# /etc/fstab: static file system information.\n"
    "UUID=0a1b / ext4 errors=remount-ro 0 1\n"
    "\n"
    "/dev/nvme0n1p1\t/data\txfs\trelatime,discard\t0\t2\t\n"
    "  LABEL=my\\040disk   /mnt/my\\040disk\text4   defaults\n"
    "tmpfs /scratch tmpfs\n"
    "UUID=2c3d none swap sw 0 0\n"
    "#UUID=4e5f none swap sw 0 0\n"
    "/swap.img\tnone\tswap\tsw,pri=5\n"
)


def fstab_lines_changed(after):
    pairs = zip(FSTAB.split("\n"), after.split("\n"), strict=True)
    return [(old, new) for old, new in pairs if old != new]


def test_swap_lines_become_comments_and_nothing_else_changes():
    after = edits.fstab_no_swap(FSTAB)
    assert [new for _, new in fstab_lines_changed(after)] == [
        "# nodetune turned swap off: UUID=2c3d none swap sw 0 0",
        "# nodetune turned swap off: /swap.img\tnone\tswap\tsw,pri=5",
    ]
    assert edits.fstab_no_swap(after) == after


def test_an_option_changes_only_the_options_field_of_its_line():
    after = edits.fstab_option(FSTAB, "/data", "noatime")
    assert fstab_lines_changed(after) == [
        ("/dev/nvme0n1p1\t/data\txfs\trelatime,discard\t0\t2\t", "/dev/nvme0n1p1\t/data\txfs\tdiscard,noatime\t0\t2\t")
    ]
    assert edits.fstab_option(after, "/data", "noatime") == after


@pytest.mark.parametrize(
    ("mount_point", "option", "line"),
    [
        ("/data/", "noatime", "/dev/nvme0n1p1\t/data\txfs\tdiscard,noatime\t0\t2\t"),
        ("/data", "nodiscard", "/dev/nvme0n1p1\t/data\txfs\trelatime\t0\t2\t"),
        ("/mnt/my disk", "noatime", "  LABEL=my\\040disk   /mnt/my\\040disk\text4   defaults,noatime"),
        ("/scratch", "noatime", "tmpfs /scratch tmpfs defaults,noatime"),
        ("/", "noatime", "UUID=0a1b / ext4 errors=remount-ro,noatime 0 1"),
    ],
)
def test_mount_points_are_found_however_they_are_written(mount_point, option, line):
    assert [new for _, new in fstab_lines_changed(edits.fstab_option(FSTAB, mount_point, option))] == [line]


def test_taking_the_only_option_out_leaves_defaults():
    assert edits.fstab_option("a /b ext4 discard 0 0\n", "/b", "nodiscard") == "a /b ext4 defaults 0 0\n"
    assert edits.fstab_option("a /b ext4 rw,sync 0 0\n", "/b", "async") == "a /b ext4 rw 0 0\n"
    assert edits.fstab_option("a /b ext4 barrier=0,nobarrier 0 0\n", "/b", "barrier") == "a /b ext4 defaults 0 0\n"


def test_options_named_by_the_change_are_taken_out_too():
    after = edits.fstab_option("a /b ext4 rw,lazytime 0 0", "/b", "noatime", remove=["lazytime"])
    assert after == "a /b ext4 rw,noatime 0 0"


def test_a_mount_point_missing_in_fstab_is_refused_with_advice():
    with pytest.raises(ValueError, match=r"no line mounts /srv: if a unit does, .*systemctl edit"):
        edits.fstab_option(FSTAB, "/srv", "noatime")


def test_carriage_returns_and_a_missing_newline_stay_in_fstab():
    text = "a /b ext4 rw 0 0\r\nc none swap sw 0 0"
    assert edits.fstab_option(text, "/b", "noatime") == "a /b ext4 rw,noatime 0 0\r\nc none swap sw 0 0"
    assert edits.fstab_no_swap(text) == "a /b ext4 rw 0 0\r\n# nodetune turned swap off: c none swap sw 0 0"


MEMLOCK = {"default-ulimits": {"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}}}


def test_json_keys_merge_deeply_and_the_order_stays():
    text = '{\n    "z": 1.0,\n    "default-ulimits": {\n        "nofile": {"Hard": 5}\n    },\n    "a": ["ü"]\n}\n'
    after = edits.merge_json(text, MEMLOCK)
    assert list(json.loads(after)) == ["z", "default-ulimits", "a"]
    assert list(json.loads(after)["default-ulimits"]) == ["nofile", "memlock"]
    assert '\n    "z": 1.0,\n' in after
    assert '"ü"' in after
    assert edits.merge_json(after, MEMLOCK) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": true\n}\n'),
        ("{}\n", '{\n  "a": true\n}\n'),
        ('{\n\t"b": 1\n}', '{\n\t"b": 1,\n\t"a": true\n}'),
        ('{"b":1,"c":2}', '{"b":1,"c":2,"a":true}'),
        ('{"b": 1}\n', '{"b": 1, "a": true}\n'),
        ('{\r\n  "b": 1\r\n}\r\n', '{\r\n  "b": 1,\r\n  "a": true\r\n}\r\n'),
    ],
)
def test_json_is_written_in_the_hand_that_it_is_found_in(before, after):
    assert edits.merge_json(before, {"a": True}) == after


def test_json_that_holds_the_value_already_keeps_every_byte():
    text = '{ "a" :true,\n\n "b":[1,\n2] }'
    assert edits.merge_json(text, {"a": True}) == text


def test_json_tells_one_from_true():
    assert edits.merge_json('{"a": 1}', {"a": True}) == '{"a": true}'


def test_a_null_takes_a_json_key_out():
    assert edits.merge_json('{"a": 1, "b": {"c": 2, "d": 3}}', {"b": {"c": None}}) == '{"a": 1, "b": {"d": 3}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  "a": 1,\n}', "not valid JSON.*line 3 column 1"),
        ("[1]", "not a JSON object"),
        ('{"a": 1, "a": 2}', 'the key "a" twice'),
    ],
)
def test_json_that_is_not_understood_is_left_alone(text, message):
    with pytest.raises(ValueError, match=message):
        edits.merge_json(text, {"a": True})


NCCL = "# site settings\nNCCL_DEBUG=WARN\n\nNCCL_IB_TC=41\n#NCCL_IB_TC=9\nNCCL_IB_TC=106\n"


def test_one_line_of_a_name_is_left_so_that_first_and_last_agree():
    after = edits.assignments(NCCL, {"NCCL_IB_TC": "106"})
    assert after == "# site settings\nNCCL_DEBUG=WARN\n\nNCCL_IB_TC=106\n#NCCL_IB_TC=9\n"
    assert edits.assignments(after, {"NCCL_IB_TC": "106"}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "A=1\n"),
        ("B=2\n", "B=2\nA=1\n"),
        ("B=2", "B=2\nA=1"),
        ("B=2\r\nA=0\r\n", "B=2\r\nA=1\r\n"),
        ("B=2\r\n", "B=2\r\nA=1\r\n"),
        ("A=0", "A=1"),
        ("AA=0\n#A=3\n", "AA=0\n#A=3\nA=1\n"),
        ("B=x=y\x0cA=5\n", "B=x=y\x0cA=5\nA=1\n"),
    ],
)
def test_an_assignment_lands_once_and_the_rest_stays(before, after):
    assert edits.assignments(before, {"A": 1}) == after


def test_a_null_takes_an_assignment_out():
    assert edits.assignments("A=1\nB=2\nexport A=3", {"A": None}) == "B=2\n"


def test_a_value_with_a_line_break_is_refused():
    with pytest.raises(ValueError, match="line break"):
        edits.assignments("", {"A": "1\nB=2"})


def test_lines_are_taken_out_by_exact_text_and_comments_stay():
    gone = ["NCCL_IB_TC=41", "#NCCL_IB_TC=9", "", "NCCL_DEBUG=WARN "]
    after = edits.without_lines(NCCL, gone)
    assert after == NCCL.replace("\nNCCL_IB_TC=41", "")
    assert edits.without_lines(after, gone) == after
    assert edits.without_lines("A=1\r\nB=2\nA=1", ["A=1"]) == "A=1\r\nB=2\n"
    assert edits.without_lines("A=1\r\nB=2\nA=1", ["A=1\r"]) == "B=2\nA=1"


def test_of_a_line_that_is_there_twice_the_first_can_stay():
    assert edits.without_lines("A=1\nB=2\nA=1", [], once=["A=1"]) == "A=1\nB=2\n"
    assert edits.without_lines("A=1\nB=2\n", [], once=["A=1"]) == "A=1\nB=2\n"


@pytest.mark.parametrize("text", ["B=2\\\nA=1\n", "A=1\\\nB=2\n"])
def test_a_line_that_is_continued_is_left_alone(text):
    with pytest.raises(ValueError, match="belongs to another one"):
        edits.without_lines(text, [line for line in text.split("\n") if line.startswith("A")])


def daemon_json(path):
    return {"change": "edit", "path": str(path), "how": "json", "with": {"keys": {"shm": "16g"}}}


def test_an_edit_and_its_undoing_restore_every_byte_and_the_mode(tmp_path):
    path = tmp_path / "daemon.json"
    path.write_bytes(b'{"caf\xc3\xa9":  1}')
    path.chmod(0o640)
    change = daemon_json(path)
    before = edit.read(change)
    edit.put(change, edit.wanted(change, before))
    assert json.loads(path.read_text(encoding="utf-8")) == {"café": 1, "shm": "16g"}
    assert path.stat().st_mode & 0o777 == 0o640
    assert edit.wanted(change, edit.read(change)) == edit.read(change)
    edit.put(change, before)
    assert path.read_bytes() == b'{"caf\xc3\xa9":  1}'


def test_a_missing_file_is_created_and_removed_again(tmp_path):
    change = daemon_json(tmp_path / "docker" / "daemon.json")
    before = edit.read(change)
    edit.put(change, edit.wanted(change, before))
    assert (tmp_path / "docker" / "daemon.json").read_text() == '{\n  "shm": "16g"\n}\n'
    edit.put(change, before)
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_are_no_utf8_stay_as_they_are(tmp_path):
    path = tmp_path / "fstab"
    path.write_bytes(b"# caf\xe9\na none swap sw 0 0\n")
    change = {"change": "edit", "path": str(path), "how": "fstab_no_swap"}
    edit.put(change, edit.wanted(change, edit.read(change)))
    assert path.read_bytes() == b"# caf\xe9\n# nodetune turned swap off: a none swap sw 0 0\n"


def test_an_edit_without_effect_does_not_create_the_file(tmp_path):
    change = {"change": "edit", "path": str(tmp_path / "fstab"), "how": "fstab_no_swap"}
    now = edit.read(change)
    assert edit.wanted(change, now) == now


def test_a_file_that_an_edit_does_not_understand_is_named(tmp_path):
    path = tmp_path / "daemon.json"
    path.write_text("{")
    with pytest.raises(ChangeError, match=rf"^{path}: is not valid JSON.*line 1 column 2"):
        edit.wanted(daemon_json(path), edit.read(daemon_json(path)))
    assert file.content_of(edit.read(daemon_json(path))) == b"{"


def test_an_unknown_edit_is_a_problem(tmp_path):
    change = {"change": "edit", "path": str(tmp_path / "x"), "how": "sed"}
    with pytest.raises(ChangeError, match="unknown edit sed"):
        edit.wanted(change, edit.read(change))


MAP = "# sets\n*\t-fstype=nfs,nconnect=2,hard\tserver:/sets/&\nplain   server:/plain\nlong -rw \\\n server:/long\n"


def test_an_entry_of_a_map_gets_its_option_and_all_else_stays():
    after = edits.automount_option(MAP, "*", "nconnect=8", ["nconnect=2"])
    assert after == MAP.replace("nfs,nconnect=2,hard", "nfs,hard,nconnect=8")
    assert edits.automount_option(after, "*", "nconnect=8") == after
    assert edits.automount_option(MAP, "plain", "nconnect=8") == MAP.replace(
        "server:/plain", "-nconnect=8 server:/plain"
    )


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        (MAP, "gone", "no entries for gone"),
        (MAP, "long", "continues on the next line"),
        (MAP + MAP, "plain", "2 entries for plain"),
        ("plain\n", "plain", "has no location"),
    ],
)
def test_an_entry_that_is_not_clear_is_left_alone(text, key, problem):
    with pytest.raises(ValueError, match=problem):
        edits.automount_option(text, key, "nconnect=8")


def test_one_line_is_replaced_and_nothing_else():
    text = "[ethernet]\r\nmtu=1500\r\n\n[user]\nmtu=1500"
    after = edits.replaced_line(text, 2, "mtu=1500", "mtu=9000")
    assert after == "[ethernet]\r\nmtu=9000\r\n\n[user]\nmtu=1500"
    assert edits.replaced_line(after, 2, "mtu=1500", "mtu=9000") == after
    assert edits.replaced_line(text, 5, "mtu=1500", "mtu=9000") == text[:-4] + "9000"


@pytest.mark.parametrize("number", [0, 1, 3, 99])
def test_a_line_that_is_another_one_meanwhile_is_left_alone(number):
    with pytest.raises(ValueError, match="is not 'mtu=1500' any more: plan again"):
        edits.replaced_line("[ethernet]\nmtu=1500\nmtu=4200\n", number, "mtu=1500", "mtu=9000")
