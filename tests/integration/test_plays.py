"""Ansible over real sshds: hosts reached as nodetune reaches them, and what is said of those that cannot be worked on."""

import contextlib
import os
import resource
import signal
import subprocess

import pytest
import yaml
from test_accounts import PASSWORD, accounts, target  # noqa: F401  (accounts is a fixture)

from nodetune.audit import hosts as audit_hosts
from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.inventory import as_probed
from nodetune.remediation.ansible.play import PlayOptions

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def whoami(tmp_path):
    path = tmp_path / "play.yml"
    task = {"name": "who", "ansible.builtin.command": "id -un"}
    path.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [task, task]}]))
    return path


def only(outcomes):
    (outcome,) = outcomes.values()
    return outcome


def test_hosts_of_which_some_fail_do_not_cost_the_others(farm, whoami):
    unknown, shut = farm.address(), farm.address()
    farm.start({unknown: ()}, f"HostKey {farm.folder}/stranger")
    targets = [
        *(farm.target(each, python=str(farm.bin / "python3")) for each in farm.good),
        farm.target(unknown, "stranger"),
        farm.target(shut, "shut"),
        farm.target(farm.good[0], "locked-out", config=farm.with_config(key=farm.folder / "stranger")),
        farm.target(farm.good[0], "no-python", python="/nowhere/python3"),
        farm.target("no-such-host.invalid", "nameless"),
    ]
    found = play.play(whoami, targets, {})
    assert [found[each].state for each in farm.good] == ["ok", "ok"]
    assert [result.result["stdout"] for result in found[farm.good[0]].results] == [farm.user] * 2
    says = {
        "stranger": ("unreachable", "--accept-new-host-keys"),
        "shut": ("unreachable", "refused"),
        "locked-out": ("unreachable", "Permission denied"),
        "no-python": ("failed", "ansible_python_interpreter"),
        "nameless": ("unreachable", "resolve"),
    }
    for name, (state, text) in says.items():
        assert (found[name].state, text in found[name].message) == (state, True), found[name].message
    assert f"try `ssh -F {farm.config}" in found["shut"].message


def test_a_shim_of_pyenv_is_no_obstacle_where_the_probe_ran(farm, whoami):
    """Ansible takes the first python3.N on the PATH; pyenv has shims for versions that are not chosen, which end with 127."""
    shims, address = farm.folder / "shims", farm.address()
    shims.mkdir()
    for minor in range(8, 16):
        farm.script(shims / f"python3.{minor}", f"echo 'pyenv: python3.{minor}: command not found' >&2; exit 127")
    farm.start({address: (f"SetEnv PATH={shims}:{farm.bin}:/bin HOME={farm.home}",)})
    farm.know(address)
    shimmed = farm.target(address)
    found = only(play.play(whoami, [shimmed], {}))
    assert (found.state, "no usable python3" in found.message) == ("failed", True), found.message
    ((_, facts, _),) = audit_hosts.collect([shimmed], {"host.uptime_s"}, ConnectionOptions())
    found = only(play.play(whoami, [as_probed(shimmed, facts)], {}))
    assert (found.state, found.results[0].result["stdout"]) == ("ok", farm.user), found.message


def largest_child():
    """The memory of the largest process that this one has started and that has ended, in KiB: those of other tests too."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


@pytest.mark.parametrize("prints", ["exec yes", "exec yes >&2", "exec yes '[],'", "exec tr '\\0' x < /dev/zero"])
def test_a_host_that_prints_without_end_is_cut_off(farm, tmp_path, prints):
    """Ansible keeps in memory what a host prints: it would be all of it, for as long as the play lasts."""
    path = tmp_path / "play.yml"
    path.write_text(
        yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.ping": None}]}])
    )
    endless = farm.script(tmp_path / "python3", prints)
    good, other = farm.good[:2]
    targets = [farm.target(good, python=str(farm.bin / "python3")), farm.target(other, python=str(endless))]
    before = largest_child()
    found = play.play(path, targets, {}, PlayOptions(seconds=120))
    assert found[good].state == "ok"
    assert (found[other].state, "too much output" in found[other].message) == ("unreachable", True), found[other]
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # counts for a child, too, until its exec
    assert largest_child() < max(200_000, before, mine) + 50_000


def test_a_host_that_has_only_ipv6_is_played(new_farm, whoami):
    farm = new_farm()
    farm.start({"::1": ()})
    farm.know("::1")
    found = only(play.play(whoami, [farm.target("::1", "six", python=str(farm.bin / "python3"))], {}))
    assert (found.state, found.results[0].result["stdout"]) == ("ok", farm.user), found.message


def test_a_new_host_key_is_taken_only_when_that_is_wanted(new_farm, whoami):
    farm = new_farm()
    address = farm.address()
    farm.start({address: ()})
    asked = farm.target(address, python=str(farm.bin / "python3"))
    assert only(play.play(whoami, [asked], {})).state == "unreachable"
    assert farm.known_hosts.read_text() == ""
    trusting = PlayOptions(connection=SessionOptions(accept_new_host_keys=True))
    assert only(play.play(whoami, [asked], {}, trusting)).state == "ok"
    assert address in farm.known_hosts.read_text()


def test_sudo_with_a_password_without_one_and_refused(accounts, whoami):  # noqa: F811
    def become(user, password=None):
        return only(play.play(whoami, [target(accounts, user, become=True, become_password=password)], {}))

    for outcome in (become("asker", PASSWORD), become("free"), become("free", PASSWORD)):
        assert (outcome.state, outcome.results[0].result["stdout"]) == ("ok", "root"), outcome.message
    for outcome, says in (
        (become("asker"), "--ask-become-pass"),
        (become("asker", "wrong-password"), "did not accept the password"),
        (become("refused", PASSWORD), "/etc/sudoers.d"),
    ):
        assert (outcome.state, says in outcome.message) == ("failed", True), outcome.message
        assert "wrong-password" not in outcome.message


def test_a_login_by_password(accounts, whoami):  # noqa: F811
    empty = accounts.with_config(key=accounts.folder / "nothing")
    outcome = only(play.play(whoami, [target(accounts, "asker", password=PASSWORD, config=empty)], {}))
    if "sshpass" in outcome.message:
        pytest.skip("this ansible-core gives no password to OpenSSH without sshpass")
    assert (outcome.state, outcome.results[0].result["stdout"]) == ("ok", "asker"), outcome.message
    wrong = only(play.play(whoami, [target(accounts, "asker", password="wrong-password", config=empty)], {}))
    assert (wrong.state, "wrong-password" in wrong.message) == ("unreachable", False)


def test_a_host_that_dies_midway_keeps_what_was_done(new_farm, tmp_path):
    """The connection breaks while the second task runs, as it does when the power goes."""
    farm = new_farm()
    address = farm.address()
    farm.start({address: ()})
    farm.know(address)
    path = tmp_path / "play.yml"
    commands = {"first": "echo first", "second": "sleep 500"}
    tasks = [{"name": name, "ansible.builtin.command": command} for name, command in commands.items()]
    path.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))

    def cut(event):
        if event.status == "ok" and event.task == "first":
            for session in reversed(children(farm.servers[0].pid)):  # sshd before what it started
                with contextlib.suppress(ProcessLookupError):
                    os.kill(session, signal.SIGKILL)
            farm.stop()

    asked = farm.target(address, python=str(farm.bin / "python3"))
    outcome = only(play.play(path, [asked], {}, on_event=cut))
    assert outcome.state == "unreachable", outcome
    assert outcome.results[0].result["stdout"] == "first"


def children(pid):
    done = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
    direct = [int(each) for each in done.stdout.split()]
    return [each for child in direct for each in (*children(child), child)]
