"""The settings file of a folder, perhaps of another author, decides neither where nodetune writes nor what runs."""

import shutil

import pytest

from nodetune.foundation import paths
from tests.support.commandline import nodetune

pytestmark = pytest.mark.usefixtures("here")
AUDIT = ("audit", "--facts", "facts.json", "--fail-on", "never")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder: a project in a home of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(paths.bundled("facts/recorded/h200-x4.json"), folder / "facts.json")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("NODETUNE_CONFIG", "NODETUNE_HISTORY", "NODETUNE_RUNS", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def refused(*words, **more):
    done = nodetune(*words, **more)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def everything(folder):
    return sorted(folder.parent.rglob("*"))


OUTSIDE = ["{tmp}/x", "../x", "~/x", "sub/../../x", "link", "link/x", "linked.db"]


@pytest.mark.parametrize("file", ["nodetune.toml", "pyproject.toml"])
@pytest.mark.parametrize("place", OUTSIDE)
def test_a_history_outside_the_folder_is_refused_and_nothing_is_written(here, place, file):
    (here / "link").symlink_to(here.parent)
    (here / "linked.db").symlink_to(here.parent / "new.db")
    head = "[tool.nodetune]\n" * (file == "pyproject.toml")
    (here / file).write_text(f'{head}history = "{place.format(tmp=here.parent)}"\n')
    before = everything(here)
    told = refused(*AUDIT)
    assert f"{file}:{1 + bool(head)}: history: a folder does not decide what is written outside it" in told
    assert "NODETUNE_HISTORY" in told
    assert everything(here) == before


@pytest.mark.parametrize("place", [*OUTSIDE, "./~/x"])
def test_run_records_outside_the_folder_are_refused(here, place):
    (here / "link").symlink_to(here.parent)
    (here / "linked.db").symlink_to(here.parent / "new.db")
    (here / "nodetune.toml").write_text(f'runs = "{place.format(tmp=here.parent)}"\n')
    for words in (("runs",), ("runs", "show", "last"), ("config",)):
        told = refused(*words)
        assert "nodetune.toml:1: runs: a folder does not decide what is written outside it" in told
        assert "NODETUNE_RUNS" in told


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_file_that_the_database_writes_next_to_it_is_no_link_out_of_the_folder(here, ending):
    (here / f"fleet.db{ending}").symlink_to(here.parent / "target")
    (here / "nodetune.toml").write_text('history = "fleet.db"\n')
    assert "outside" in refused(*AUDIT)
    assert not (here.parent / "target").exists()


def test_a_place_in_the_folder_holds(here):
    (here / "sub").mkdir()
    (here / "nodetune.toml").write_text('history = "sub/../sub/fleet.db"\nruns = "records"\n')
    assert nodetune(*AUDIT).returncode == 0
    assert (here / "sub" / "fleet.db").exists()
    assert str(here / "records") in nodetune("runs", "--format", "json").stdout


def test_the_user_writes_anywhere(here):
    place = here.parent / "own.db"
    assert nodetune(*AUDIT, env={"NODETUNE_HISTORY": str(place)}).returncode == 0
    assert place.exists()
    (here / "nodetune.toml").write_text('history = "/nonexistent/x.db"\n')
    assert nodetune(*AUDIT, "--history", place).returncode == 0


def test_a_folder_names_no_image_that_runs_on_nodes(here):
    (here / "nodetune.toml").write_text('transport = "kubernetes"\nimage = "registry.example.com/other:1"\n')
    assert "nodetune.toml:2: image: a folder does not decide which image runs on nodes" in refused("audit")
    (here / "nodetune.toml").write_text('transport = "kubernetes"\n')
    told = refused("audit", "--image", "own:1", env={"KUBECONFIG": "/nonexistent"})
    assert "folder" not in told
