"""A profile of tuned's is written and made active, and goes again. tuned itself is met on a machine of tests/machines."""

import os
import sys

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import tuned

ADM = """#!{python}
import pathlib, sys
etc = pathlib.Path({etc!r})
active, mode = etc / "active_profile", etc / "profile_mode"
if sys.argv[1] == "active":
    print("Current active profile: " + active.read_text().strip())
elif (etc / "refuses").exists():
    sys.exit("Unable to switch profile: Cannot load profile(s)")
elif sys.argv[1] == "auto_profile":
    active.write_text("recommended\\n"), mode.write_text("auto\\n")
else:
    missing = [name for name in sys.argv[2:] if not (etc / name / "tuned.conf").exists()]
    assert not missing, missing
    active.write_text(" ".join(sys.argv[2:]) + "\\n"), mode.write_text("manual\\n")
"""


@pytest.fixture
def etc(tmp_path, monkeypatch):
    """/etc/tuned of a host whose tuned runs, with a program that switches profiles as tuned-adm does."""
    folder = tmp_path / "etc"
    for name in ("site", "other", "recommended"):
        (folder / name).mkdir(parents=True)
        (folder / name / "tuned.conf").write_text("[main]\n")
    (folder / "active_profile").write_text("site\n")
    (folder / "profile_mode").write_text("manual\n")
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    program = tmp_path / "bin" / "tuned-adm"
    program.parent.mkdir()
    program.write_text(ADM.format(python=sys.executable, etc=str(folder)))
    program.chmod(0o755)
    monkeypatch.setattr("nodetune_host.command.TOOL_PATH", f"{program.parent}:/usr/bin:/bin")
    for name, path in (("ACTIVE", folder / "active_profile"), ("MODE", folder / "profile_mode")):
        monkeypatch.setattr(tuned, name, str(path))
    monkeypatch.setattr(tuned, "_runs", lambda: True)
    return folder


def wish(etc, content="[main]\ninclude=site\n", **more):
    return {
        "change": "tuned",
        "path": f"{etc}/nodetune/tuned.conf",
        "content": content,
        "mode": "0644",
        "includes": "site",
    } | more


def now(etc):
    own = etc / "nodetune/tuned.conf"
    names = [(etc / name).read_text().strip() for name in ("active_profile", "profile_mode")]
    return (*names, own.read_text() if own.exists() else None)


def test_a_profile_is_made_active_and_every_byte_goes_again(etc, do):
    change = wish(etc)
    assert do([change]).problems == []
    assert now(etc) == ("nodetune", "manual", change["content"])
    assert not do([change], run="run-2").changed
    assert do.back().problems == []
    assert now(etc) == ("site", "manual", None)
    assert not (etc / "nodetune").exists()


def test_a_second_group_of_a_run_applies_the_profile_again(etc, do):
    do([wish(etc, "one\n")], group="a")
    do([wish(etc, "two\n")], group="b")
    assert now(etc) == ("nodetune", "manual", "two\n")
    assert do.back().refused == []
    assert now(etc) == ("site", "manual", None)


def test_a_profile_that_tuned_chose_is_chosen_by_it_again(etc, do):
    (etc / "active_profile").write_text("recommended\n")
    (etc / "profile_mode").write_text("auto\n")
    do([wish(etc, includes="recommended")])
    assert now(etc)[:2] == ("nodetune", "manual")
    do.back()
    assert now(etc) == ("recommended", "auto", None)


def test_another_profile_than_the_plan_was_made_for_stays(etc, do):
    (etc / "active_profile").write_text("other\n")
    (problem,) = do([wish(etc)]).problems
    assert "active profile is now other" in problem["message"]
    assert now(etc) == ("other", "manual", None)


def test_a_refusal_of_tuned_leaves_no_file(etc, do):
    (etc / "refuses").touch()
    (problem,) = do([wish(etc)]).problems
    assert "Cannot load profile" in problem["message"]
    assert now(etc) == ("site", "manual", None)


def test_a_profile_that_somebody_changed_since_is_not_undone(etc, do):
    do([wish(etc)])
    (etc / "active_profile").write_text("other\n")
    assert [each["message"] for each in do.back().refused] == ["changed since by someone else"]
    assert now(etc)[0] == "other"


def test_a_tuned_that_does_not_run_is_not_started(etc, do, monkeypatch):
    do([wish(etc)])
    monkeypatch.setattr(tuned, "_runs", lambda: False)
    monkeypatch.setattr("nodetune_host.command.TOOL_PATH", "/nowhere")
    assert do.back().problems == []
    assert now(etc) == ("site", "manual", None)


def test_a_dry_run_shows_the_file_and_the_switch(etc, do):
    (diff,) = do.check([wish(etc)]).diff
    assert diff["before"] == "# active profile: site (manual)\n"
    assert diff["after"] == "# active profile: nodetune (manual)\n[main]\ninclude=site\n"
    assert now(etc) == ("site", "manual", None)


def test_tuned_runs_while_its_process_does(tmp_path, monkeypatch):
    monkeypatch.setattr(tuned, "PID", str(tmp_path / "pid"))
    assert not tuned._runs()
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    assert not tuned._runs()
    monkeypatch.setattr(tuned, "_text", lambda path: "python\0/usr/sbin/tuned" if path.startswith("/proc") else "1\n")
    assert tuned._runs()


def test_an_answer_that_names_another_profile_is_a_problem(etc, monkeypatch):
    monkeypatch.setattr(tuned.command, "run", lambda argv, seconds: "")
    with pytest.raises(ChangeError, match="Current active profile: site"):
        tuned.put(wish(etc), tuned.wanted(wish(etc), tuned.read(wish(etc))))
    assert now(etc) == ("site", "manual", None)
