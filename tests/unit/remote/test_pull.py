"""Pull mode: a node leaves its facts whole or not at all, and an audit of them knows whose they are and how old."""

import ast
import glob
import json
import math
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jsonschema
import pytest

from nodetune.api.model import HostFacts
from nodetune.audit.selection import Selection
from nodetune.facts import document as facts_document
from nodetune.facts import saved
from nodetune.foundation import paths
from nodetune.remote.pull import collector, deposit
from tests.support import killing
from tests.support.commandline import nodetune

MACHINE = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
EVERY = 1800
PYTHONS = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))) or [sys.executable]
FEW = {"host.hostname", "host.boot_id", "sysctl.vm.swappiness"}
NAMED = "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execv(sys.argv[2], sys.argv[2:])"


def apart(*more):
    """The words that start a command in a host of its own: with another name, and other file systems by --mount."""
    return ["unshare", "--uts", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), *more]


def can_be_apart():
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run([*apart("--mount"), "true"], capture_output=True).returncode
    )


a_node = pytest.mark.skipif(not can_be_apart(), reason="no namespaces here")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can write as another user")


class Node:
    """Hosts that run a collector as their unit would: by its full path, with nothing in the environment."""

    def __init__(self, folder, names=FEW, **settings):
        self.facts = folder / "facts"
        self.facts.mkdir()
        self.script = folder / "collect"
        self.lock = folder / "lock"
        given = {"folder": str(self.facts), "every": EVERY, "lock": str(self.lock), **settings}
        self.script.write_bytes(collector.script(names, collector.Settings(**given)))

    def command(self, name="gpu001", python=sys.executable, script=None):
        return [*apart(), sys.executable, "-c", NAMED, name, python, "-I", "-S", str(script or self.script)]

    def run(self, *arguments, **more):
        return subprocess.run(self.command(*arguments, **more), env={}, capture_output=True, text=True, timeout=100)

    def left(self, name="gpu001"):
        return json.loads((self.facts / f"{name}.json").read_text())


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


# What a node does.


def facts_of_this_machine():
    """The names of the facts that an audit reads, in a process that has loaded no substitute of NVML before."""
    script = (
        "from nodetune.remote import local, payload; from nodetune.audit import selection\n"
        "print(*local.facts(payload.families(selection.Selection().facts()), 20.0)['facts'])"
    )
    return set(subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60).split())


@a_node
def test_a_node_leaves_all_facts_that_an_audit_would_ask_it_for(tmp_path):
    node = Node(tmp_path, Selection().facts())
    done = node.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    document = node.left()
    jsonschema.validate(document, json.loads((paths.bundled("data/schemas") / "facts.json").read_text()))
    assert set(document["facts"]) == facts_of_this_machine()
    assert document["host"] == document["facts"]["host.hostname"]["value"] == "gpu001"
    assert document["about"]["every"] == EVERY
    assert abs(document["about"]["time"] - time.time()) < 100
    assert document["facts"]["host.boot_id"]["value"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert not document["failed"]


@a_node
@pytest.mark.parametrize("python", PYTHONS)
def test_the_collector_runs_on_every_python_that_the_probe_does(node, python):
    done = node.run(python=python)
    assert (done.returncode, done.stderr) == (0, "")
    assert node.left()["facts"]["host.hostname"] == {"value": "gpu001"}


def test_deposit_is_python_36_without_nodetune_imports():
    tree = ast.parse(collector.DEPOSIT.read_text(), feature_version=(3, 6))
    imported = {name.name for each in ast.walk(tree) if isinstance(each, ast.Import) for name in each.names}
    imported |= {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    assert {"os"} <= imported <= set(sys.stdlib_module_names)


@a_node
def test_the_file_is_private_and_no_other_is_left(node):
    node.run()
    assert [path.name for path in node.facts.iterdir()] == ["gpu001.json"]
    assert stat.S_IMODE((node.facts / "gpu001.json").stat().st_mode) == 0o640


@a_node
def test_facts_that_only_a_site_file_asks_for_are_collected(tmp_path):
    site = tmp_path / "site.yml"
    site.write_text("add:\n  - {id: site-pids, sysctl: kernel.pid_max, accept: {at_least: 1}}\n")
    done = nodetune("pull", "bundle", "--dir", tmp_path / "facts", "--site", site, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert b"kernel.pid_max" in (tmp_path / "out/files/opt/nodetune/pull/collect").read_bytes()


@a_node
def test_of_two_runs_at_once_the_second_says_so_and_ends(node):
    import fcntl

    with node.lock.open("w") as held:
        held.write("4711")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        done = node.run()
    assert done.returncode == 1
    assert done.stderr == "nodetune: an earlier run (process 4711) has not ended: not starting another\n"
    assert not list(node.facts.iterdir())
    assert node.run().returncode == 0


@a_node
@pytest.mark.parametrize("name", ["localhost", "localhost.localdomain", "(none)", "a/b", ".hidden", "a b"])
def test_a_host_name_that_is_no_host_s_own_makes_no_file(node, name):
    done = node.run(name)
    assert done.returncode == 1
    assert "set a real host name" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(node.facts.iterdir())


@a_node
@pytest.mark.parametrize("planted", ["gpu001.json", "partial"])
def test_a_planted_link_is_replaced_and_never_written_through(node, tmp_path, planted):
    other = tmp_path / "precious"
    other.write_text("as it was")
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (node.facts / (planted if planted != "partial" else f".gpu001.{boot}.partial")).symlink_to(other)
    assert node.run().returncode == 0
    assert other.read_text() == "as it was"
    assert not (node.facts / "gpu001.json").is_symlink()
    assert node.left()["host"] == "gpu001"


@a_node
def test_a_folder_planted_under_the_name_is_an_error_of_one_line(node):
    (node.facts / "gpu001.json").mkdir()
    done = node.run()
    assert (done.returncode, done.stderr) == (1, f"nodetune: {node.facts}/gpu001.json is unchanged: Is a directory\n")
    assert len(list(node.facts.iterdir())) == 1


@a_node
def test_a_folder_that_is_not_there_is_an_error_of_one_line(node):
    node.facts.rmdir()
    done = node.run()
    assert (done.returncode, done.stderr) == (1, f"nodetune: {node.facts}: No such file or directory\n")


@a_node
@pytest.mark.parametrize(
    ("breaking", "reason"),
    [
        ("head -c 1000000 /dev/zero > fill 2> /dev/null", "No space left on device"),
        ("mount -o remount,ro .", "Read-only file system"),
    ],
)
def test_where_nothing_can_be_written_the_earlier_facts_stay(node, breaking, reason):
    steps = f"""
mount -t tmpfs -o size=16k none {node.facts} && cd {node.facts} && echo earlier > gpu001.json || exit 9
{breaking}
"$@"; ended=$?
cat gpu001.json; ls -A; exit $ended
"""
    inside = [*apart("--mount"), "sh", "-c", steps, "sh", *node.command()]
    done = subprocess.run(inside, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"nodetune: {node.facts}/gpu001.json is unchanged: {reason}\n")
    assert done.stdout.splitlines()[0] == "earlier"
    assert "partial" not in done.stdout


@a_node
def test_a_probe_that_says_nothing_leaves_the_earlier_facts(node):
    assert node.run().returncode == 0
    before = (node.facts / "gpu001.json").read_bytes()
    node.script.write_bytes(node.script.read_bytes().replace(b"main.document(", b"sys.exit("))
    assert node.run().returncode == 1
    assert (node.facts / "gpu001.json").read_bytes() == before


@as_root
@a_node
def test_an_ordinary_user_writes_what_root_read():
    with tempfile.TemporaryDirectory() as open_to_all:  # pytest's own folders are closed to others
        os.chmod(open_to_all, 0o755)
        node = Node(Path(open_to_all), user="nobody")
        shutil.chown(node.facts, "nobody")
        done = node.run()
        assert (done.returncode, done.stderr) == (0, "")
        assert (node.facts / "gpu001.json").owner() == "nobody"
        assert node.left()["about"]["uid"] == 0


@as_root
@a_node
def test_a_user_who_does_not_exist_is_named(tmp_path):
    done = Node(tmp_path, user="nobody-of-that-name").run()
    assert (done.returncode, done.stderr) == (1, "nodetune: user nobody-of-that-name does not exist here\n")


def forked(work):
    """A child that does only this."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def test_a_killed_run_leaves_a_complete_file(tmp_path):
    texts = [json.dumps({"facts": {}, "fill": letter * 4_000_000}).encode() for letter in "ab"]

    deposit._write(str(tmp_path), "gpu001", texts[0])
    left_behind = 0
    for _ in killing.before_each_change(lambda: deposit._write(str(tmp_path), "gpu001", texts[1])):
        assert (tmp_path / "gpu001.json").read_bytes() in texts
        left_behind += len(list(tmp_path.iterdir())) - 1
    assert left_behind, "none was killed while it wrote"
    assert (tmp_path / "gpu001.json").read_bytes() == texts[1]
    deposit._write(str(tmp_path), "gpu001", texts[1])
    assert [path.name for path in tmp_path.iterdir()] == ["gpu001.json"]


def test_who_reads_while_many_write_sees_whole_files_only(tmp_path):
    documents = [json.dumps({**MACHINE, "host": f"n{number}", "about": about()}).encode() for number in range(60)]

    def write(number):
        for _ in range(5):
            deposit._write(str(tmp_path), f"n{number}", documents[number])

    writers = [forked(lambda number=number: write(number)) for number in range(len(documents))]
    rules, seen = saved.Rules(), 0
    while writers:
        writers = [pid for pid in writers if not os.waitpid(pid, os.WNOHANG)[0]]
        found = [rules.read(path, path.stem) for path in tmp_path.glob("*.json")]
        assert {each.state for each in found} <= {"ok"}
        seen += len(found)
    assert seen >= len(documents)
    assert len(list(tmp_path.iterdir())) == len(documents)


# What is put on a node.


def bundled(folder, *more):
    done = nodetune("pull", "bundle", "--dir", "/shared/nodetune/facts", "-o", folder, *more)
    assert (done.returncode, done.stderr) == (0, "")
    return done


def test_the_same_choice_gives_the_same_files(tmp_path):
    bundled(tmp_path / "a"), bundled(tmp_path / "b")
    there = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(there) == 5
    assert all((tmp_path / "a" / each).read_bytes() == (tmp_path / "b" / each).read_bytes() for each in there)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_knows_every_line_of_the_units(tmp_path):
    bundled(tmp_path, "--every", "1h", "--python", "/bin/sh")
    units = sorted((tmp_path / "files/etc/systemd/system").iterdir())
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert not [line for line in done.stderr.splitlines() if "nodetune" in line]
    assert [unit.name for unit in units] == ["nodetune-pull.service", "nodetune-pull.timer"]


@pytest.mark.parametrize("every", [60, 1799, 1800, 7 * 86400])
def test_a_run_that_keeps_to_its_timer_is_never_stale(every):
    made = collector.folder(FEW, collector.Settings("/facts", every))
    timer = made["files/etc/systemd/system/nodetune-pull.timer"][0].decode()
    settings = dict(line.split("=") for line in timer.splitlines() if "=" in line and not line.startswith("#"))
    latest = sum(int(settings[name]) for name in ("OnUnitInactiveSec", "RandomizedDelaySec", "AccuracySec"))
    assert every - 1 <= int(settings["OnUnitInactiveSec"]) + int(settings["RandomizedDelaySec"]) <= every
    facts = HostFacts("n1", {}, {"time": 1e9, "every": every})
    assert saved.Rules(now=1e9 + latest + 100).aged(facts, Path("n1.json")).state == "ok"


def tree(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}


@a_node
def test_installing_twice_is_installing_once_and_can_be_undone(tmp_path):
    image = tmp_path / "image"
    (image / "opt/nodetune/guard").mkdir(parents=True)
    (image / "opt/nodetune/guard/prolog").write_text("another's")
    bundled(tmp_path / "out")

    def tool(name):
        done = subprocess.run(
            [*apart(), str(tmp_path / "out" / name)],
            env={"PATH": os.environ["PATH"], "DESTDIR": str(image)},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    assert len(tool("install")) == 3
    assert {path: stat.S_IMODE((image / path.lstrip("/")).stat().st_mode) for path in collector.Place().files} == {
        path: int(mode, 8) for path, mode in collector.Place().files.items()
    }
    wanted = image / "etc/systemd/system/timers.target.wants/nodetune-pull.timer"
    assert os.readlink(wanted) == "/etc/systemd/system/nodetune-pull.timer"
    assert tool("install") == []
    (image / "etc/systemd/system/nodetune-pull.timer").write_text("changed")
    assert len(tool("install")) == 1
    tool("uninstall")
    assert tree(image) == {"opt/nodetune/guard/prolog"}
    assert tool("uninstall") == []


def test_what_was_written_can_be_read_by_a_program(tmp_path):
    told = json.loads(bundled(tmp_path / "out", "--format", "json", "--every", "2h", "--user", "nodetune").stdout)
    jsonschema.validate(told, json.loads((paths.bundled("data/schemas") / "pull-bundle.json").read_text()))
    assert told["every"] == 7200
    for each in told["files"]:
        assert stat.S_IMODE(Path(each["path"]).stat().st_mode) == int(each["mode"], 8)
        digest = subprocess.run(["sha256sum", each["path"]], capture_output=True, text=True).stdout.split()[0]
        assert each["sha256"] == digest
    assert {each["destination"] for each in told["files"]} == {*collector.Place().files, ""}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dir", "facts"], "--dir 'facts': give an absolute path"),
        (["--dir", "/a b"], "--dir '/a b': give an absolute path"),
        (["--dir", "/a/../b"], "--dir '/a/../b': give an absolute path"),
        (["--dir", "/a\nExecStart=/x"], "give an absolute path"),
        (["--dir", "/a%n"], "give an absolute path"),
        (["--dir", "/a", "--every", "30"], "'30' is not a duration: use 90s, 30m, 2h or 1d"),
        (["--dir", "/a", "--every", "0m"], "'0m' is not a duration"),
        (["--dir", "/a", "--every", "30s"], "--every must be from 1m to 7d"),
        (["--dir", "/a", "--every", "8d"], "--every must be from 1m to 7d"),
        (["--dir", "/a", "--user", "a b"], "--user 'a b' is not a valid user name"),
        (["--dir", "/a", "--python", "python3"], "--python 'python3': give an absolute path"),
        (["--dir", "/a", "-p", "nope"], "unknown profile 'nope'"),
    ],
)
def test_a_slip_is_one_clear_line(tmp_path, arguments, said):
    done = nodetune("pull", "bundle", "-o", tmp_path / "out", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_else_is_not_written_into(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    done = nodetune("pull", "bundle", "--dir", "/a", "-o", tmp_path)
    assert (done.returncode, [path.name for path in tmp_path.iterdir()]) == (2, ["thesis.tex"])
    assert "contains other files (thesis.tex): give a new folder" in done.stderr


# What an audit makes of the files.


def about(age=0.0, **changes):
    return {"time": time.time() - age, "every": EVERY, **changes}


def leave(folder, host, name=None, **changes):
    given = {"about": about(), **changes}
    (folder / f"{name or host}.json").write_text(json.dumps({**MACHINE, "host": host, **given}))


def state(folder, rules=None, name="n1"):
    found = (rules or saved.Rules()).read(folder / f"{name}.json", name)
    assert (found.facts is None) == (found.state != "ok")
    return found.state, found.message


@pytest.mark.parametrize(
    ("changes", "oldest", "wanted"),
    [
        ({"age": 0}, None, "ok"),
        ({"age": 2 * EVERY}, None, "ok"),
        ({"age": 2 * EVERY + 300}, None, "stale"),
        ({"age": 2 * EVERY + 300}, 7200, "ok"),
        ({"age": 600}, 300, "stale"),
        ({"age": -60}, None, "ok"),
        ({"age": -3 * 86400}, None, "clock wrong"),
        ({"age": -3 * 86400}, 86400, "clock wrong"),
        ({"age": 300 * 86400, "every": 86400 * 365}, None, "ok"),
        ({"time": None}, None, "bad facts"),
        ({"time": "yesterday"}, 300, "bad facts"),
        ({"time": 10**400}, None, "bad facts"),
        ({"time": -(10**400)}, None, "bad facts"),
        ({"time": True}, None, "bad facts"),
        ({"every": "often"}, None, "bad facts"),
        ({"every": 10**400}, None, "bad facts"),
        ({"every": None}, None, "bad facts"),
        ({"every": -5}, None, "bad facts"),
    ],
)
def test_a_file_is_as_fresh_as_its_node_or_the_reader_wants_it(tmp_path, changes, oldest, wanted):
    leave(tmp_path, "n1", about=about(**changes))
    assert state(tmp_path, saved.Rules(oldest))[0] == wanted


def test_a_stale_file_says_how_old_it_is(tmp_path):
    leave(tmp_path, "n1", about=about(5 * 3600 + 10))
    assert state(tmp_path)[1] == "collected 5 h ago, wanted at most 62 min: does nodetune-pull.timer run there?"


def test_a_file_from_the_future_says_whose_clock_it_is(tmp_path):
    leave(tmp_path, "n1", about=about(-3 * 86400 - 10))
    assert state(tmp_path)[1] == "collected 3 days from now, by the host's clock: set that, or this machine's"


def test_saved_facts_of_any_age_and_file_name_are_judged(tmp_path):
    leave(tmp_path, "n1", name="monday", about={"time": 0})
    found, told = state(tmp_path, name="monday")
    assert (found, "days ago, on 1970-01-01" in told) == ("ok", True)
    assert state(tmp_path, saved.Rules(math.inf), "monday")[0] == "bad facts", (
        "an age was asked for: then whose is, too"
    )


def test_a_node_that_writes_another_s_file_is_not_believed(tmp_path):
    leave(tmp_path, "n2", name="n1")
    found, said = state(tmp_path)
    assert (found, said) == ("bad facts", f"{tmp_path}/n1.json: contains facts for n2 and must have that name")


@pytest.mark.parametrize("content", ["", "{", '{"facts": {', '{"facts": {}, "schema": "nodetune.facts/9"}', "[]", "\0"])
def test_a_half_file_and_one_of_another_version_are_bad_facts(tmp_path, content):
    (tmp_path / "n1.json").write_text(content)
    assert state(tmp_path)[0] == "bad facts"


@pytest.mark.parametrize(("plant", "why"), [(os.mkfifo, "not a file"), (os.mkdir, "is a directory")])
def test_what_is_no_file_is_never_waited_for(tmp_path, plant, why):
    plant(tmp_path / "n1.json")
    assert state(tmp_path) == ("bad facts", f"{tmp_path}/n1.json: {why}")


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/kmsg", "/etc/shadow"])
def test_a_link_that_a_node_left_is_not_followed(tmp_path, target):
    os.symlink(target, tmp_path / "n1.json")
    assert state(tmp_path) == ("bad facts", f"{tmp_path}/n1.json: a link: links are not followed here")


@pytest.mark.parametrize(
    ("files", "hosts", "found"),
    [
        (["a", "b"], None, {"a": "a", "b": "b"}),
        (["a", "b"], ["a", "c"], {"a": "a"}),
        (["a"], ["a.example.org"], {"a.example.org": "a"}),
        (["a.example.org"], ["a"], {"a": "a.example.org"}),
        (["a.one"], ["a.two"], {}),
        (["a"], ["a.one", "a.two"], {}),
        (["a.one", "a.two"], ["a"], {}),
        (["a", "a.one"], ["a.one"], {"a.one": "a.one"}),
        ([], ["a"], {}),
    ],
)
def test_a_file_name_may_lack_the_domain_of_the_host(files, hosts, found):
    whose, without = saved.whose([Path(f"{name}.json") for name in files], hosts)
    assert {host: path.stem for host, path in whose.items()} == found
    assert without == [host for host in hosts or [] if host not in found]


def audited(*arguments):
    done = nodetune("audit", *arguments, "--format", "json", "--fail-on", "never")
    assert "Traceback" not in done.stderr
    return done.returncode, {each["name"]: each["state"] for each in json.loads(done.stdout)["hosts"]}


def test_an_audit_names_stale_missing_broken_and_future_facts(tmp_path):
    leave(tmp_path, "gpu001")
    leave(tmp_path, "gpu002", about=about(86400))
    leave(tmp_path, "gpu003", about=about(-86400))
    leave(tmp_path, "gpu009", name="gpu004")
    (tmp_path / "gpu005.json").write_text('{"facts": {"host.ar')
    leave(tmp_path, "gpu006.example.org")
    leave(tmp_path, "stranger")
    (tmp_path / ".gpu001.0000.partial").write_text("{")
    states = {
        "gpu001": "ok",
        "gpu002": "stale",
        "gpu003": "clock wrong",
        "gpu004": "bad facts",
        "gpu005": "bad facts",
        "gpu006": "ok",
        "gpu007": "missing",
    }
    assert audited("--facts", tmp_path, "-i", "gpu[001-007]") == (3, states)
    assert audited("--facts", tmp_path)[1]["stranger"] == "ok"
    assert audited("--facts", tmp_path, "-i", "gpu[001-002]", "--max-age", "2d") == (
        0,
        {"gpu001": "ok", "gpu002": "ok"},
    )


def test_a_named_file_is_checked_for_age_not_for_name(tmp_path):
    leave(tmp_path, "gpu001", name="copy", about=about(86400))
    assert audited("--facts", tmp_path / "copy.json") == (3, {"gpu001": "stale"})
    assert audited("--facts", tmp_path / "copy.json", "--max-age", "2d") == (0, {"gpu001": "ok"})


def test_pulled_hosts_are_compared_within_their_groups(tmp_path):
    for number in range(1, 9):
        kernel = {"value": "6.1.0-odd" if number == 8 else "6.1.0-13"}
        leave(tmp_path, f"gpu{number}", facts={**MACHINE["facts"], "host.kernel": kernel})
    inventory = tmp_path / "hosts.ini"
    inventory.write_text("[old]\ngpu[1:4]\n[new]\ngpu[5:8]\n")
    done = nodetune(
        "audit", "--facts", tmp_path, "-i", inventory, "--cohort", "inventory", "-s", "fleet*", "--format", "json"
    )
    odd = {each["name"]: each["findings"] for each in json.loads(done.stdout)["hosts"]}["gpu8"]
    groups = {each["check"]: each["fleet"]["group"] for each in odd if each["status"] == "fail"}
    assert "new" in groups["fleet-kernel-differs"]


def test_an_age_without_saved_facts_is_a_slip():
    done = nodetune("audit", "--max-age", "2h")
    assert done.returncode == 2
    assert "--max-age needs --facts or --cache" in done.stderr


def test_saved_facts_of_a_person_are_judged_as_before(tmp_path):
    (tmp_path / "node.json").write_text(facts_document.dump(facts_document.from_data(MACHINE)))
    assert set(audited("--facts", tmp_path)[1].values()) == {"ok"}
