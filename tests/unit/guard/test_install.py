"""What an install of the guard puts on nodes, what it says of slurm.conf, and the changes on the host that carry it out."""

import dataclasses
import hashlib
import io
import json
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import nodetune
from nodetune.api.model import Absent, Value
from nodetune.config import profile
from nodetune.facts import document
from nodetune.guard.deploy import archive as parts
from nodetune.guard.deploy import gres, node_changes, slurm_conf
from nodetune.guard.deploy import paths as deploy_paths
from nodetune.guard.deploy import policy as policies
from nodetune.guard.node import metrics

sys.path.insert(0, str(Path(__file__).parents[3] / "playbooks" / "module_utils"))

from nodetune_host import scheduler
from nodetune_host.problem import ChangeError
from nodetune_host.resources import guarded, program, slurm

MACHINES = Path(__file__).parents[2] / "data" / "synthetic"
CONF = "ClusterName=lab\nSlurmctldHost=c1\nSchedulerParameters=bf_continue  # ours\nPrologFlags=Contain\nProctrackType=cgroup\n"


def policy(**settings):
    return policies.make(profile.resolve(profile.named(["training"])), "n01", settings)


def changes(groups):
    return [change for group in groups for change in group["changes"]]


# The controller's half


def test_an_archive_is_reproducible_and_lists_its_files():
    made = parts.archive()
    assert made.content == parts.archive.__wrapped__().content
    with zipfile.ZipFile(io.BytesIO(made.content)) as archive:
        manifest = archive.read("MANIFEST")
        listed = dict(line.split("  ")[::-1] for line in manifest.decode().splitlines())
        assert set(archive.namelist()) == {"MANIFEST", *listed}
        assert all(hashlib.sha256(archive.read(name)).hexdigest() == digest for name, digest in listed.items())
    assert made.name == f"{nodetune.__version__}-{hashlib.sha256(manifest).hexdigest()[:16]}"


def test_the_program_comes_first_and_slurm_conf_last():
    groups = node_changes.install(node_changes.NodeInstall(policy(), conf="/etc/slurm/slurm.conf", textfile=""))
    kinds = [change["change"] for change in changes(groups)]
    assert kinds[:2] == ["program", "file"]
    assert kinds[-1] == "slurm"
    assert [group["group"] for group in groups] == ["guard", "guard-timer", "slurm.conf"]


def test_the_check_for_other_programs_needs_no_timer_and_goes_with_the_guard():
    check = f"{deploy_paths.HOME}/{deploy_paths.CHECK}"
    installed = {
        each.get("path"): each.get("content")
        for each in changes(node_changes.install(node_changes.NodeInstall(policy())))
    }
    assert f"{deploy_paths.HOME}/healthcheck" in installed[check]
    assert f"{deploy_paths.UNITS}/{deploy_paths.TIMER}" not in installed
    removed = {each.get("path"): each.get("content", "") for each in changes(node_changes.remove([], None))}
    assert removed[check] is None


def test_every_script_is_one_that_the_shell_understands():
    wanted = node_changes.NodeInstall(policy(off=["/etc/it's off"]), textfile="/var/lib/x.prom")
    scripts = [
        each for each in changes(node_changes.install(wanted)) if str(each.get("content", "")).startswith("#!/bin/sh")
    ]
    assert len(scripts) == len(deploy_paths.SCRIPTS) + 1
    for each in scripts:
        assert each["mode"] == "0755"
        subprocess.run(["/bin/sh", "-n"], input=each["content"], text=True, check=True)


def test_an_unchanged_policy_keeps_its_bytes():
    installed = policies.text({**policy(), "time": 1})
    assert policies.text(policy(), installed) == installed
    assert policies.text(policy(mode="enforce"), installed) != installed
    assert json.loads(policies.text(policy(), "no policy"))["mode"] == "observe"


def test_only_folders_of_programs_are_ever_removed():
    given = [
        "/opt/nodetune/guard/0.1.0-0123456789abcdef",
        "/opt/nodetune/guard/mine",
        "/opt/nodetune/guard/../x-0123456789abcdef",
    ]
    assert parts.folders(given) == given[:1]


def test_only_missing_words_are_added_to_slurm_conf():
    assert set(slurm_conf.missing({})) == set(slurm_conf.LINES)
    told = """Configuration data as of 2026-11-21T10:00:00
Prolog[0]               = /etc/slurm/own.sh
Prolog[1]               = /opt/nodetune/guard/prolog
Epilog                  = /opt/nodetune/guard/epilog
TaskProlog              = (null)
PrologFlags             = Alloc,Contain
SchedulerParameters     = bf_continue
HealthCheckProgram      = /opt/nodetune/guard/healthcheck
HealthCheckInterval     = 300 sec
"""
    settings = slurm_conf.running(told)
    assert slurm_conf.missing(settings) == {
        "TaskProlog": "/opt/nodetune/guard/taskprolog",
        "SchedulerParameters": "bf_continue,nohold_on_prolog_fail",
    }
    assert slurm_conf.calls_us(settings)
    assert not slurm_conf.calls_us(slurm_conf.running("Prolog = (null)\nEpilog = /etc/slurm/epilog\n"))


@pytest.mark.parametrize("state", ["START_ONLY", "REBOOT_ONLY"])
def test_a_health_check_that_runs_only_once_is_reported(state):
    once = {**{name: str(value) for name, value in missing_all().items()}, "healthchecknodestate": state}
    assert slurm_conf.missing(once) == {"HealthCheckNodeState": "ANY"}
    assert slurm_conf.missing({**once, "healthchecknodestate": "ANY,CYCLE"}) == {}


def missing_all():
    return {name.lower(): value for name, value in slurm_conf.missing({}).items()}


def test_a_prolog_timeout_shorter_than_the_guard_is_reported():
    settings = slurm_conf.running("PrologEpilogTimeout     = 5\nEpilogTimeout = 65534\nPrologTimeout = 20 sec\n")
    assert slurm_conf.hurried(settings, node_changes.most_seconds(policy())) == {"PrologEpilogTimeout": 5}
    assert slurm_conf.hurried(slurm_conf.running("PrologEpilogTimeout     = 65534\n"), 1e6) == {}
    assert slurm_conf.hurried(slurm_conf.running("HealthCheckTimeout      = 5 sec\n"), 9) == {"HealthCheckTimeout": 5}
    assert slurm_conf.hurried(slurm_conf.running("HealthCheckTimeout      = 60 sec\n"), 9) == {}


def test_a_diff_names_new_gates_and_changed_rules():
    before, after = policy(), policy(mode="enforce")
    dropped = before["checks"].pop()["id"]
    before["checks"][0]["severity"] = "low"
    before["checks"].append({**before["checks"][0], "id": "gone-since"})
    found = policies.compare(before, after)
    assert (found.gates, found.gates_no_more) == ((dropped,), ("gone-since",))
    assert found.judged_otherwise == (before["checks"][0]["id"],)
    assert found.settings == (("mode", "observe", "enforce"),)
    assert not policies.compare(after, after)
    assert policies.compare({}, after).settings == ()


@pytest.mark.parametrize(
    ("machine", "lines"),
    [
        (
            "hgx-h200-untuned",
            (
                "Name=gpu Type=h200 File=/dev/nvidia[0-3] Cores=0-55",
                "Name=gpu Type=h200 File=/dev/nvidia[4-7] Cores=56-111",
            ),
        ),
        ("workstation-4x4090", ("Name=gpu Type=rtx_4090 File=/dev/nvidia[0-3]",)),
    ],
)
def test_gres_conf_lists_each_gpu_with_the_cores_near_it(machine, lines):
    facts = document.load(MACHINES / f"{machine}.json")
    bare = {**facts.facts, "slurm.gres": Absent("no gres.conf"), "slurm.present": Value(True)}
    assert gres.lacking(dataclasses.replace(facts, facts=bare)) == lines
    assert gres.lacking(document.load(MACHINES / "hgx-h200-tuned.json")) == (), "there AutoDetect is on"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--set", "cap=3"), "unknown guard setting 'cap'"),
        (("--set", "cap_nodes_per_hour=none"), "cap_nodes_per_hour is 'none' but must be a number"),
        (("--set", "seconds=3"), "seconds is 3 and not a mapping"),
        (("--set", "cap_nodes_per_hour"), "is not NAME=VALUE"),
        (("--python", "python3"), "not an absolute path"),
        (("--textfile", "/var/lib/x.prom"), "--textfile needs --timer"),
        (("--timer", "--textfile", "/var/lib/x"), "end in .prom"),
    ],
)
def test_a_wrong_option_is_told_before_any_host_is_asked(words, says):
    command = [sys.executable, "-m", "nodetune", "guard", "install", "--yes", "-i", "nowhere.invalid", *words]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, says in done.stderr, done.stdout) == (2, True, ""), done.stderr
    assert "Traceback" not in done.stderr


# The host's half


def conf_state(text):
    return slurm.file.state(text.encode(), 0o644, 0, 0)


def with_lines(text, settings=slurm_conf.LINES):
    change = {"path": "/etc/slurm/slurm.conf", "settings": dict(settings)}
    return slurm.file.content_of(slurm.wanted(change, conf_state(text))).decode()


@pytest.mark.parametrize(
    "text", [CONF, CONF.rstrip("\n"), CONF.replace("\n", "\r\n"), "\n", "Prolog=\nHealthCheckInterval=0\n"]
)
def test_slurm_conf_is_as_before_without_our_lines(text):
    written = with_lines(text)
    assert "Prolog=/opt/nodetune/guard/prolog\n" in written
    assert with_lines(written) == written, "written again nothing changes"
    assert with_lines(written, {}) == text


def test_the_line_of_the_site_is_kept_as_a_comment():
    written = with_lines(CONF)
    assert "\nSchedulerParameters=bf_continue,nohold_on_prolog_fail\n" in written
    assert "\n# nodetune guard took over: SchedulerParameters=bf_continue  # ours\n" in written
    assert "\nPrologFlags=Contain,Alloc\n" in written


def test_lines_added_below_ours_survive_an_uninstall():
    assert with_lines(with_lines(CONF) + "NodeName=n02\n", {}) == CONF + "NodeName=n02\n"


def test_a_program_of_the_site_is_never_taken_out():
    with pytest.raises(ChangeError, match=r"Prolog=/etc/slurm/own.sh is set: make it call /opt/nodetune/guard/prolog"):
        with_lines(CONF + "Prolog=/etc/slurm/own.sh\n")


def test_torn_marks_are_left_alone():
    with pytest.raises(ChangeError, match="one of the two marks"):
        with_lines(with_lines(CONF).replace("# nodetune guard: end\n", ""))


@pytest.fixture
def a_program(tmp_path):
    """A change that installs the program of this version below a folder of the test."""
    made = parts.archive()
    archive = tmp_path / "archive.zip"
    archive.write_bytes(made.content)
    return {"path": str(tmp_path / "opt" / "guard" / made.name), "archive": str(archive), "pythons": [sys.executable]}


def bring(change):
    """Bring the program to what is wanted; the state of before."""
    before = program.read(change)
    program.put(change, program.wanted(change, before))
    return before


def test_a_program_is_unpacked_run_and_removed_completely(a_program, tmp_path):
    before = bring(a_program)
    folder = Path(a_program["path"])
    assert program.read(a_program) == program.wanted(a_program, before) == {"python": sys.executable}
    done = subprocess.run(
        [
            folder / "python",
            "-I",
            "-S",
            "-B",
            folder / "nodetune" / "guard" / "node" / "__main__.py",
            "show",
            "--run",
            tmp_path / "run",
        ],
        capture_output=True,
        text=True,
        env={},
    )
    assert (done.returncode, done.stdout) == (0, "last run: none since boot\ninconclusive: never since boot\n"), done
    assert all(path.stat().st_mode & 0o022 == 0 for path in folder.rglob("*") if not path.is_symlink())
    program.put(a_program, before)
    assert not (tmp_path / "opt").exists()


def test_a_program_that_was_damaged_is_made_again(a_program):
    bring(a_program)
    for damage in ("nodetune/guard/node/decide.py", "MANIFEST", "pynvml.py"):
        (Path(a_program["path"]) / damage).write_text("x")
        assert program.read(a_program) == {"python": ""}
        bring(a_program)
        assert program.read(a_program) == {"python": sys.executable}


def test_an_archive_that_is_another_or_torn_puts_nothing_there(a_program):
    archive = Path(a_program["archive"])
    whole = archive.read_bytes()
    for content, says in ((b"torn", "not a zip file"), (whole[: len(whole) // 2], "not a zip file")):
        archive.write_bytes(content)
        with pytest.raises(ChangeError, match=says):
            bring(a_program)
    archive.write_bytes(whole)
    other = {**a_program, "path": a_program["path"][:-16] + "0" * 16}
    with pytest.raises(ChangeError, match="is not the expected program"):
        bring(other)
    assert not Path(a_program["path"]).parent.exists()


def test_a_host_without_a_python_that_is_new_enough_is_told_so(a_program, tmp_path):
    old = tmp_path / "python3.8"
    old.write_text("#!/bin/sh\necho 3.8\n")
    old.chmod(0o755)
    change = {**a_program, "pythons": [str(old), "/nowhere/python3"]}
    with pytest.raises(ChangeError, match=r"3.9 or newer: .*python3.8 \(3.8\), /nowhere/python3 \(not there\)"):
        program.wanted(change, program.read(change))


@pytest.fixture
def removed(tmp_path, monkeypatch):
    """removed(slurmd runs, what scontrol prints; None: it fails): remove the prolog of the guard. Its folder."""
    path = tmp_path / "guard" / "prolog"
    path.parent.mkdir()
    path.write_text("x")

    def remove(runs, config=None):
        def scontrol(*_words):
            if config is None:
                raise ChangeError("scontrol is not on this node")
            return config.format(path)

        monkeypatch.setattr(scheduler, "process_of", lambda _name: (7, ["slurmd"]) if runs else (0, []))
        monkeypatch.setattr(scheduler, "scontrol", scontrol)
        change = {"path": str(path), "content": None, "folder": str(path.parent)}
        guarded.put(change, guarded.wanted(change, guarded.read(change)))
        return path.parent

    return remove


@pytest.mark.parametrize(
    ("runs", "config"), [(False, None), (False, "Prolog = (null)"), (True, "Prolog = /etc/slurm/own.sh")]
)
def test_a_program_goes_where_slurm_does_not_call_it(removed, runs, config):
    assert not removed(runs, config).exists()


@pytest.mark.parametrize(
    ("runs", "config", "why"),
    [
        (True, None, "it is unknown whether Slurm still calls it: scontrol is not on this node"),
        (True, "Prolog[0] = {}", "Slurm still calls it"),
        (False, "Prolog[0] = {}", "Slurm still calls it"),
    ],
)
def test_a_program_that_slurm_may_call_is_kept(removed, tmp_path, runs, config, why):
    with pytest.raises(ChangeError, match=why):
        removed(runs, config)
    assert (tmp_path / "guard" / "prolog").read_text() == "x"


# Without Slurm


@pytest.fixture
def node(tmp_path):
    """A node whose guard looked a moment ago."""

    class Node:
        folder = tmp_path

        def __init__(self):
            self.say("guard.json", json.dumps({**policy(off=[str(tmp_path / "off")]), "host": 'a "quoted"\\ host'}))
            self.say("heartbeat", f"{int(time.time())} - health: pass\n")

        def say(self, name, text):
            (self.folder / name).write_text(text)

        def looked(self, verdict, reason="", age=0, **more):
            self.say(
                "health.json",
                json.dumps({"verdict": verdict, "reason": reason, "time": int(time.time()) - age, **more}),
            )

        def check(self, textfile=""):
            words = [
                sys.executable,
                "-I",
                "-S",
                "-B",
                metrics.__file__,
                self.folder,
                self.folder / "guard.json",
                textfile,
            ]
            done = subprocess.run(words, capture_output=True, text=True, env={})
            assert done.stderr == ""
            assert len(done.stdout) <= 81
            return done.returncode, done.stdout.rstrip("\n")

    return Node()


def test_check_answers_as_node_problem_detector_expects(node):
    assert node.check() == (2, "the guard has not checked this node since it booted")
    node.looked("pass")
    assert node.check() == (0, "all gating checks pass")
    node.looked("fail", "nodetune: gpu-lost: GPU3\n" + "é" * 200)
    code, line = node.check()
    assert (code, len(line), line.startswith("gpu-lost: GPU3 ?")) == (1, 80, True)
    node.looked("inconclusive", "no driver")
    assert node.check() == (2, "inconclusive: no driver")
    node.looked("pass", age=3600)
    assert node.check() == (2, "the guard last checked 60 minutes ago: is its timer active?")
    node.looked("pass")
    node.say("off", "")
    assert node.check()[0] == 2
    node.say("guard.json", "{")
    assert node.check() == (2, "the guard has no readable policy: install it again")


def test_metrics_appear_whole_and_name_the_failing_checks(node):
    textfile = node.folder / "nodetune.prom"
    node.say("blind", "3 times since boot, last in the prolog of job 7: because\n")
    node.looked("fail", "nodetune: x", seconds=0.5, findings=[{"check": "gpu-lost", "severity": "critical"}])
    assert node.check(textfile)[0] == 1
    text = textfile.read_text()
    for line in (
        'nodetune_guard_result{verdict="fail"} 1\n',
        'nodetune_guard_result{verdict="pass"} 0\n',
        'nodetune_guard_failing_check{check="gpu-lost",severity="critical"} 1\n',
        "nodetune_guard_inconclusive_runs_total 3\n",
        "nodetune_guard_blind_runs_total 3\n",
        "nodetune_guard_switched_off 0\n",
        "nodetune_guard_result_duration_seconds 0.5\n",
    ):
        assert line in text
    assert [path.name for path in node.folder.glob("nodetune.prom*")] == ["nodetune.prom"]
    assert textfile.stat().st_mode & 0o777 == 0o644


def test_metrics_name_an_inconclusive_result_by_both_words(node):
    node.looked("inconclusive", "no driver")
    node.check(node.folder / "nodetune.prom")
    text = (node.folder / "nodetune.prom").read_text()
    values = {name: f'result{{verdict="{name}"}} 1\n' in text for name in ("pass", "fail", "inconclusive", "blind")}
    assert values == {"pass": False, "fail": False, "inconclusive": True, "blind": True}


def test_metrics_that_cannot_be_written_are_not_known_and_say_so(node):
    node.looked("pass")
    assert node.check("/nowhere/nodetune.prom") == (2, "no metrics: /nowhere/nodetune.prom: no such file or directory")


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed: apt install prometheus")
def test_promtool_finds_nothing_wrong_with_the_metrics(node):
    node.looked("fail", "nodetune: x", seconds=0.5, findings=[{"check": "a", "severity": "critical"}, {"check": "b"}])
    textfile = node.folder / "nodetune.prom"
    node.check(textfile)
    done = subprocess.run(["promtool", "check", "metrics"], input=textfile.read_text(), capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    wanted = node_changes.NodeInstall(policy(), textfile="/var/lib/prometheus/node-exporter/nodetune.prom")
    for change in changes(node_changes.install(wanted)):
        if change.get("path", "").startswith(deploy_paths.UNITS):
            text = change["content"].replace(f"ExecStart={deploy_paths.HOME}/check", "ExecStart=/bin/true")
            (tmp_path / Path(change["path"]).name).write_text(text)
    paths = sorted(tmp_path.iterdir())
    assert [path.name for path in paths] == [deploy_paths.SERVICE, deploy_paths.TIMER]
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "nodetune" not in done.stderr, done.stderr


def test_the_timers_metrics_file_is_found_again_in_its_service():
    wanted = node_changes.NodeInstall(policy(), textfile="/var/lib/x/nodetune.prom")
    service = next(
        each for each in changes(node_changes.install(wanted)) if each.get("path", "").endswith(deploy_paths.SERVICE)
    )
    removed = changes(node_changes.remove([], service["content"]))
    assert {"change": "file", "path": "/var/lib/x/nodetune.prom", "content": None, "mode": "0644"} in removed
    assert node_changes.metrics_file("ExecStart=/opt/nodetune/guard/check \n") == ""
