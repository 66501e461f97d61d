"""Folders whose files are not all good: what is wrong with a file is said, and the other hosts are compared."""

import json
import os

import pytest

from tests.support import commandline, documents


def nodetune(*arguments):
    """On a screen so wide that no path is broken."""
    return commandline.nodetune(*arguments, env={"COLUMNS": "1000"})


@pytest.fixture
def folders(tmp_path):
    """Three hosts on each side, of which the last has another driver after."""
    for side in ("before", "after"):
        (tmp_path / side).mkdir()
        for host in ("a", "b", "c"):
            version = "2" if (side, host) == ("after", "c") else "1"
            write(tmp_path / side / f"{host}.json", host, version)
    return tmp_path / "before", tmp_path / "after"


def write(path, host, version="1"):
    facts = {"gpu.driver_version": {"value": version}}
    path.write_text(json.dumps({"schema": "nodetune.facts/1", "host": host, "facts": facts}))


def cut(path):
    path.write_text(path.read_text()[:40])


def test_a_truncated_file_is_named_and_the_others_are_compared(folders):
    before, after = folders
    cut(after / "b.json")
    done = nodetune("diff", before, after)
    assert done.returncode == 3
    shown = " ".join(done.stdout.split())
    assert f"bad facts b: {after}/b.json: not JSON" in shown
    assert "driver_version c: 1 → 2" in shown
    assert "1 changed on 2 hosts; 1 host not compared" in shown
    assert "lost" not in shown


def test_a_bad_file_comes_before_no_difference_in_the_exit_code(folders):
    before, _ = folders
    assert nodetune("diff", before, before).returncode == 0
    cut(before / "b.json")
    assert nodetune("diff", before, before).returncode == 3


def test_a_pipe_among_the_files_is_named_and_never_opened(folders):
    before, after = folders
    os.mkfifo(before / "x.json")
    done = nodetune("diff", before, after)
    assert done.returncode == 3
    assert "x.json: not a file" in " ".join(done.stdout.split())
    assert "driver_version" in done.stdout


def test_a_pipe_that_is_given_itself_is_one_line(tmp_path, folders):
    os.mkfifo(tmp_path / "x.json")
    done = nodetune("diff", tmp_path / "x.json", folders[0] / "a.json")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"nodetune: {tmp_path}/x.json: not a file"]


def test_two_files_of_one_host_are_both_refused(folders):
    before, after = folders
    write(after / "old.json", "a", "0")
    done = nodetune("diff", before, after)
    assert done.returncode == 3
    assert "a.json, old.json all contain its facts" in " ".join(done.stdout.split())
    assert "1 changed on 2 hosts; 1 host not compared" in done.stdout
    assert "old: " not in done.stdout


def test_the_document_says_which_hosts_were_not_compared(folders):
    before, after = folders
    cut(after / "b.json")
    cut(before / "a.json")
    (after / "a.json").unlink()
    told = documents.valid("diff", nodetune("diff", before, after, "--format", "json").stdout)
    assert told["states"] == [
        {"host": "a", "before": "bad facts", "after": "missing"},
        {"host": "b", "before": "ok", "after": "bad facts"},
    ]
    assert (told["compared"], told["same"], told["lost"]) == (1, False, [])


def test_two_hosts_left_over_by_bad_files_are_not_taken_for_one(tmp_path):
    for side, host in (("before", "a"), ("after", "b")):
        (tmp_path / side).mkdir()
        write(tmp_path / side / f"{host}.json", host)
    (tmp_path / "after" / "a.json").write_text("{")
    shown = nodetune("diff", tmp_path / "before", tmp_path / "after").stdout
    assert "1 host added: b" in shown
    assert "1 host not compared" in shown


def test_more_bad_files_than_are_shown_are_counted(folders):
    before, after = folders
    for number in range(9):
        (after / f"n{number}.json").write_text(f"{{{' ' * number}x")
    shown = nodetune("diff", before, after).stdout
    assert "… and 3 more reasons (3 hosts)" in shown
    assert "9 hosts not compared" in shown


def test_only_bad_files_is_incomplete_an_empty_folder_is_usage(folders, tmp_path):
    before, after = folders
    for file in after.iterdir():
        cut(file)
    assert nodetune("diff", before, after).returncode == 3
    (tmp_path / "none").mkdir()
    assert nodetune("diff", before, tmp_path / "none").returncode == 2
