"""A rollback writes only into the file that its run changed, not into what a link or folder leads to since."""

import pytest

from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.report.text import apply


@pytest.fixture
def disk(tmp_path):
    """A file behind a link, and one in a folder behind a link."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.conf").write_text("old\n")
    (tmp_path / "link.conf").symlink_to("one/a.conf")
    (tmp_path / "folder").symlink_to("one")
    return tmp_path


def point(link, target):
    link.unlink()
    link.symlink_to(target)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("now", ["old\n", "new\n", "theirs\n", None])
@pytest.mark.parametrize(
    ("path", "link", "target"), [("link.conf", "link.conf", "two/a.conf"), ("folder/a.conf", "folder", "two")]
)
def test_a_moved_link_or_folder_is_refused(do, disk, path, link, target, now, force):
    """Whatever the other file holds: also what the run wrote, or what it found."""
    do([{"change": "file", "path": str(disk / path), "content": "new\n"}])
    point(disk / link, target)
    other = disk / "two/a.conf"
    other.write_text(now) if now else other.unlink()
    result = do.back(force=force)
    (refused,) = result.refused
    assert refused["message"] == (
        f"it was {disk}/one/a.conf in that run and is {other} now: nothing is written there; put the link or folder back first"
    )
    assert (result.changed, (disk / "one/a.conf").read_text()) == (False, "new\n")
    assert (other.read_text() if other.exists() else None) == now
    point(disk / link, target.replace("two", "one"))
    assert do.back(own="back-2").refused == []
    assert (disk / "one/a.conf").read_text() == "old\n"


def test_a_link_replaced_by_a_file_is_refused(do, disk):
    do([{"change": "edit", "path": str(disk / "link.conf"), "how": "assignments", "with": {"values": {"A": "1"}}}])
    (disk / "link.conf").unlink()
    (disk / "link.conf").write_text((disk / "one/a.conf").read_text())
    assert "is " + str(disk / "link.conf") + " now" in do.back().refused[0]["message"]
    assert "A=1" in (disk / "link.conf").read_text()


def test_a_file_and_a_link_to_it_are_one_resource(do, disk):
    do([{"change": "file", "path": str(disk / "link.conf"), "content": "1\n"}], run="run-1")
    do([{"change": "file", "path": str(disk / "one/a.conf"), "content": "2\n"}], run="run-2")
    assert [each["message"] for each in do.back("run-1").refused] == [
        "changed by run run-2 since: roll that back first"
    ]
    assert (do.back("run-2", "back-2").refused, do.back("run-1", "back-3").refused) == ([], [])
    assert (disk / "one/a.conf").read_text() == "old\n"


def test_force_is_offered_only_where_it_helps(do, disk):
    do([{"change": "file", "path": str(disk / "link.conf"), "content": "new\n"}])
    point(disk / "link.conf", "two/a.conf")
    told = Outcome("gpu1", results=(Event("gpu1", "Revert", result={"refused": do.back().refused}),))
    assert apply.rolled_back({"gpu1": told}, ["back-1"]) == "0 changes undone, 1 not undone"
