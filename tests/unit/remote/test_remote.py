"""What transports share: known hosts, the shape of a configuration, what is said over a login, hosts side by side."""

import base64
import contextlib
import json
import os
import random
import re
import socket
import threading
import time

import pytest

from nodetune.api.model import HostFacts, Value
from nodetune.facts import document
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.onhost import layout, protocol
from nodetune.remote import local, payload, pool
from nodetune.remote.connect import Connector
from nodetune.remote.login import host_keys, sudo
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.session import KEPT_ERRORS, Session
from nodetune.remote.login.ssh_config import Resolver, Settings, Shape, config_files
from nodetune.remote.paramiko import sockets
from nodetune.remote.slurm import srun
from tests.support.states import STATES

ASKED = payload.families(["host.arch"])
NONCE = "0123456789abcdef"


def key(text):
    return base64.b64encode(text.encode()).decode()


# Known hosts


@pytest.fixture
def check(tmp_path):
    """check(known_hosts, key, port=…) looks a host's key up, and returns the state of its failure or None."""
    file = tmp_path / "known_hosts"

    def look(known, shown, port=22, kind="ssh-ed25519", accept_new=False):
        file.write_text(known)
        name = "gpu1" if port == 22 else f"[gpu1]:{port}"
        host = host_keys.Host(name, "gpu1", port, (str(file), str(tmp_path / "missing")), "ssh gpu1")
        try:
            host_keys.HostKeys(accept_new).check(host, kind, key(shown), trusts_new=False, hash_names=accept_new)
        except UnreachableError as problem:
            return problem.state
        return None

    look.file = file
    return look


@pytest.mark.parametrize(
    "known",
    [
        f"gpu1 ssh-ed25519 {key('mine')}",
        f"other,GPU1 ssh-ed25519 {key('mine')} a comment",
        f"gpu? ssh-ed25519 {key('mine')}",
        f"*,!gpu2 ssh-ed25519 {key('mine')}",
        f"# gpu1\n\nrubbish\ngpu1 ssh-rsa {key('old')}\ngpu1 ssh-ed25519 {key('mine')}",
        f"gpu1 ssh-ed25519 {key('mine').rstrip('=')}",
    ],
)
def test_a_key_that_is_known_is_accepted(check, known):
    assert check(known, "mine") is None


@pytest.mark.parametrize(
    ("known", "state"),
    [
        ("", "unknown host key"),
        (f"gpu2 ssh-ed25519 {key('mine')}", "unknown host key"),
        (f"*,!gpu1 ssh-ed25519 {key('mine')}", "unknown host key"),
        (f"@cert-authority gpu1 ssh-ed25519 {key('mine')}", "unknown host key"),
        (f"gpu1 ssh-ed25519 {key('another')}", "host key changed"),
        (f"gpu1 ssh-rsa {key('another')}", "host key changed"),
        (f"gpu1 ssh-ed25519 {key('mine')}\n@revoked * ssh-ed25519 {key('mine')}", "host key changed"),
    ],
)
def test_any_other_key_is_refused(check, known, state):
    assert check(known, "mine") == state
    if state == "host key changed":
        assert check(known, "mine", accept_new=True) == state, "trusting first keys is not trusting changed ones"


def test_another_port_has_its_own_host_keys(check):
    assert check(f"[gpu1]:2222 ssh-ed25519 {key('mine')}", "mine", port=2222) is None
    assert check(f"[gpu*]:2222 ssh-ed25519 {key('mine')}", "mine", port=2222) is None
    assert check(f"gpu1 ssh-ed25519 {key('mine')}", "mine", port=2222) is None
    assert check(f"[gpu1]:2222 ssh-ed25519 {key('mine')}", "mine") == "unknown host key"
    assert check(f"gpu1 ssh-ed25519 {key('another')}", "mine", port=2222) == "unknown host key"
    both = f"gpu1 ssh-ed25519 {key('mine')}\n[gpu1]:2222 ssh-ed25519 {key('another')}"
    assert check(both, "mine", port=2222) == "host key changed"


def test_a_first_key_is_saved_under_a_hashed_name_if_wanted(check):
    assert check("", "mine", accept_new=True) is None
    text = check.file.read_text()
    assert text.startswith("|1|")
    assert "gpu1" not in text
    assert check(text, "mine") is None
    assert check(text, "another") == "host key changed"


def test_many_first_keys_at_once_are_all_kept(tmp_path):
    keys, files = host_keys.HostKeys(accept_new=True), (str(tmp_path / ".ssh/known_hosts"),)

    def trust(number):
        host = host_keys.Host(f"h{number}", f"h{number}", 22, files, "ssh")
        keys.check(host, "ssh-ed25519", key(str(number)), trusts_new=False, hash_names=False)

    threads = [threading.Thread(target=trust, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (tmp_path / ".ssh/known_hosts").read_text().splitlines()
    assert sorted(line.split()[0] for line in lines) == sorted(f"h{number}" for number in range(20))
    assert (tmp_path / ".ssh").stat().st_mode & 0o777 == 0o700


# OpenSSH's configuration


@pytest.fixture
def shape(tmp_path):
    def make(text, **included):
        for name, more in included.items():
            (tmp_path / name).write_text(more)
        (tmp_path / "config").write_text(text.replace("@", str(tmp_path)))
        return Shape.read((str(tmp_path / "config"),))

    return make


def test_hosts_are_alike_when_the_same_host_lines_hold(shape):
    found = shape("Host gpu* !gpu9\n  User a\nhost=login\n  User b\nHost *\n  Port 22\n")
    assert found.of("gpu1") == found.of("gpu2")
    assert found.of("gpu1") != found.of("gpu9")
    assert found.of("other") == found.of("another") != found.of("login")


@pytest.mark.parametrize(
    "line", ["Match exec true", "CanonicalizeHostname yes", "IdentityFile ~/.ssh/%h", "IdentityAgent $SOCK"]
)
def test_host_specific_settings_are_read_for_each_host(shape, line):
    assert shape(f"{line}\n").of("gpu1") is None
    assert shape("Include @/more\n", more=f"{line}\n").of("gpu1") is None


def test_the_configuration_file_of_the_arguments_wins():
    assert config_files(("-o", "Port=1", "-F", "/x")) == config_files(("-F/x",)) == ("/x",)
    assert config_files(("-F", "none")) == ()
    assert config_files(())[1] == "/etc/ssh/ssh_config"


def test_a_host_keeps_its_name_with_shared_settings(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host bastion\n  HostName 10.0.0.9\nHost *\n  User bob\n  Port 2222\n")
    resolver = Resolver()

    def ask(name):
        return resolver.resolve(Target(name, ssh_args=("-F", str(config))))

    assert [ask(name).host for name in ("gpu1", "gpu2", "bastion", "gpu3")] == ["gpu1", "gpu2", "10.0.0.9", "gpu3"]
    assert (ask("gpu2").user, ask("gpu2").port, ask("gpu2").key_name) == ("bob", 2222, "[gpu2]:2222")


def test_hosts_share_settings_only_with_the_same_variables(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host *\n  User bob\n")
    resolver = Resolver()

    def ask(**variables):
        return resolver.resolve(Target("gpu1", ssh_args=("-F", str(config)), **variables))

    assert [ask().user, ask(user="ann").user, ask().user] == ["bob", "ann", "bob"]
    assert [ask().port, ask(port=2222).port, ask().port] == [22, 2222, 22]


def test_tokens_are_expanded_and_unknown_ones_left():
    found = Settings("alias", "gpu1", 22, "bob")
    assert found.expand("nc %h %p %r %n 100%% %C") == "nc gpu1 22 bob alias 100% %C"


# What is said


def talk(most=1 << 20, **more):
    return Session(Target("h", **more), b"SCRIPT", NONCE, most)


def framed(data=b'{"facts": {}}'):
    return b"\n" + protocol.encode(data, NONCE)


def test_an_answer_is_complete_as_soon_as_its_last_byte_is_there():
    said, answer = talk(), framed()
    for number in range(len(answer)):
        assert not said.complete
        said.output(answer[number : number + 1])
    assert said.complete
    assert said.answer(None) == HostFacts("h", {}, {"failed": {}, "stuck": []})


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (lambda said: b"", "bad answer"),
        (lambda said: b"\xff\xfe garbage", "bad answer"),
        (lambda said: said[: len(said) // 2], "dropped"),
        (lambda said: b"\n".join(said.split(b"\n")[:-2]) + b"\n", "dropped"),
        (lambda said: said[:-20] + said[-10:], "bad answer"),
    ],
)
def test_a_damaged_answer_is_named(change, state):
    with pytest.raises(UnreachableError) as caught:
        _answer_to(change(framed(random.Random(1).randbytes(2000))))
    assert caught.value.state == state


def _answer_to(output):
    said = talk()
    said.output(output)
    return said.answer(0)


def test_without_sudo_the_script_is_sent_at_once():
    said = talk()
    assert bytes(said.to_send) == b"SCRIPT"
    assert not said.input_done
    said.sent(6)
    assert said.input_done


def test_the_password_goes_to_the_prompt_before_the_script():
    said = talk(become=True, become_password="pa ss")
    assert bytes(said.to_send) == b""
    said.errors(b"Password: \nlecture\nnodetune-password-")
    assert bytes(said.to_send) == b""
    said.errors(NONCE.encode() + b":")
    assert bytes(said.to_send) == b"pa ss\n"
    said.sent(6)
    assert not said.input_done
    said.errors(b"\nnodetune-ready-" + NONCE.encode() + b"\n")
    assert bytes(said.to_send) == b"SCRIPT"


def test_a_password_that_is_not_asked_for_is_never_sent():
    said = talk(become=True, become_password="pa ss")
    said.errors(b"nodetune-ready-" + NONCE.encode() + b"\n")
    assert bytes(said.to_send) == b"SCRIPT"


@pytest.mark.parametrize(
    ("form", "again"),
    [(b"%s", b"Sorry, try again.\n"), (b"[sudo: %s] Password: ", b"\nsudo: Authentication failed, try again.\n")],
    ids=["sudo", "sudo-rs"],
)
def test_a_password_is_sent_once(form, again):
    said = talk(become=True, become_password="pa ss")
    prompt = form % f"nodetune-password-{NONCE}:".encode()
    said.errors(prompt)
    said.sent(6)
    with pytest.raises(UnreachableError, match="did not accept the password") as caught:
        said.errors(again + prompt)
    assert caught.value.state == "become failed"


@pytest.mark.parametrize(
    ("status", "errors", "state", "says"),
    [
        (1, b"sudo: a password is required", "become failed", "sudo needs a password: use --ask-become-pass"),
        (
            1,
            b"bob is not in the sudoers file.",
            "become failed",
            "(not in the sudoers file): allow it in /etc/sudoers.d",
        ),
        (1, b"sudo: interactive authentication is required", "become failed", "sudo needs a password"),
        (1, b"sudo: I'm sorry bob. I'm afraid I can't do that", "become failed", "allow it in /etc/sudoers.d"),
        (127, b"sh: 1: sudo: not found", "become failed", "sudo is not installed there"),
        (1, b"sudo: no tty", "become failed", "sudo: no tty: sudo must allow this user to run the probe's python3"),
        (1, b"sudo: sorry, you must have a tty to run sudo", "become failed", "Defaults:USER !requiretty"),
        (1, b"sudo: python3: command not found", "no python", "install python3"),
    ],
)
def test_a_refusal_of_sudo_says_what_to_do(status, errors, state, says):
    said = talk(become=True)
    said.errors(errors)
    with pytest.raises(UnreachableError) as caught:
        said.answer(status)
    assert (caught.value.state, says in caught.value.message) == (state, True), caught.value.message


def test_output_is_cut_and_errors_are_kept_in_part():
    said = talk(most=1 << 20)
    for _ in range(20):
        said.errors(b"x" * 40_000)
    assert len(said.error_text()) <= KEPT_ERRORS
    said.output(b"y" * 200_000)
    with pytest.raises(UnreachableError) as caught:
        said.output(b"y" * 200_000)
    assert caught.value.state == "too much output"


def test_looking_for_the_answer_in_much_noise_takes_no_time():
    said = talk(most=1 << 30)
    start = time.thread_time()
    for _ in range(1000):
        said.output(b"<<nodetune nothing\n" * 1700)
    assert time.thread_time() - start < 20


@pytest.mark.parametrize(
    ("status", "errors", "state"),
    [
        (127, b"bash: line 1: python3: command not found", "no python"),
        (126, b"bash: /opt/python3: Permission denied", "no python"),
        (None, b"", "dropped"),
        (0, b"", "bad answer"),
        (1, b"Traceback (most recent call last):\nValueError: x", "bad answer"),
    ],
)
def test_an_ending_without_an_answer_is_named(status, errors, state):
    said = talk()
    said.errors(errors)
    with pytest.raises(UnreachableError) as caught:
        said.answer(status)
    assert caught.value.state == state


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (Target("h"), "python3 -I -S -"),
        (Target("h", python="/usr/bin/env python3"), "/usr/bin/env python3 -I -S -"),
        (Target("h", python="~/venv/bin/python"), "~/venv/bin/python -I -S -"),
        (Target("h", python="python3;reboot"), "'python3;reboot' -I -S -"),
        (Target("h", become=True), "sudo -n -u root -- python3 -I -S -"),
        (Target("h", become=True, become_user="a b"), "sudo -n -u 'a b' -- python3 -I -S -"),
    ],
)
def test_the_command_line_says_no_more_than_was_meant(target, line):
    assert sudo.command(target, NONCE).line == line


def test_other_ways_to_become_root_are_refused():
    with pytest.raises(UnreachableError, match="only sudo"):
        sudo.command(Target("h", become=True, become_method="su"), NONCE)


@pytest.mark.parametrize("data", [b"[" + b"[]," * protocol.MAX_VALUES + b"1]", b"0" * (protocol.MAX_UNPACKED + 1)])
def test_an_answer_that_would_fill_memory_is_not_read(data):
    with pytest.raises(UnreachableError) as caught:
        talk().output(framed(data))
    assert caught.value.state == "too much output"


LIES = {"host.arch": {"value": "x86_64"}, **{f"host.x{number}": {"value": number} for number in range(5000)}}


@pytest.mark.parametrize("text", [layout.text, json.dumps])
def test_facts_that_nobody_asked_for_are_dropped(text):
    said = talk()
    said.asked = {"host.kernel"}
    said.output(framed(text({"schema": "nodetune.facts/1", "facts": LIES}).encode()))
    assert set(said.answer(0).facts) == {"host.arch"}, "what shapes.txt names may come besides"
    assert not any("host.x" in line for line in document.FORMS._known)


@pytest.fixture
def waiting(monkeypatch):
    """What all hosts have sent: 1000 bytes together, and 100 of each whatever the others do."""
    monkeypatch.setattr(pool, "WAITING_BYTES", 1000)
    monkeypatch.setattr(pool, "ALWAYS_BYTES", 100)
    return pool.Waiting(None)


def test_only_hosts_that_send_much_are_cut_off_when_much_waits(waiting):
    waiting.add("liar", 990)
    waiting.add("honest", 50)
    waiting.add("honest", 50)
    for name in ("honest", "liar"):
        with pytest.raises(UnreachableError, match="answers of all hosts together took ") as caught:
            waiting.add(name, 1)
        assert caught.value.state == "too much output"


def test_what_was_judged_waits_no_more(waiting):
    waiting.add("judged", 990)
    waiting.over(Target("judged"))
    waiting.add("other", 990)


def test_an_answer_that_waits_is_packed_and_read_at_its_turn():
    said = pool.Waiting({"host": ["arch"]}).session(Target("h"), b"SCRIPT", NONCE, 1 << 20)
    answer = framed(layout.text({"host": "h", "facts": {"host.arch": {"value": "x" * 50_000}}}).encode())
    said.output(answer)
    read = said.answer(0)
    assert len(said._answer) < len(answer)
    assert read().facts["host.arch"] == Value("x" * 50_000)


# Side by side


def script_for(_target):
    return payload.script(ASKED, 5.0)


def here(name="here", **more):
    return Target(name, connection="local", **more)


def test_this_host_alone_is_probed_in_this_process():
    start = time.monotonic()
    ((target, facts, seconds),) = pool.collect([here()], script_for, SessionOptions(), asked=ASKED)
    assert (target.name, facts.host, facts.about["transport"]) == ("here", "here", "local")
    assert 0 < seconds <= time.monotonic() - start


def test_a_local_probe_is_validated_like_any_answer(monkeypatch):
    monkeypatch.setattr(local, "facts", lambda *_: {"facts": {"a": 5}})
    ((_, told, _),) = pool.collect([here()], script_for, SessionOptions(), asked=ASKED)
    assert (told.state, str(told)) == ("bad answer", "the fact 'a' is not a value, absent, unread or each")


def test_results_arrive_as_ready_and_a_failure_stops_no_other():
    def script(target):
        if target.name == "surprise":
            raise RuntimeError("secret-word \x1b[31m")
        return script_for(target)

    targets = [
        here("surprise", password="secret-word"),
        here("a"),
        here("b"),
        Target("-x"),
        Target("k8s", connection="kubectl"),
    ]
    found = {target.name: outcome for target, outcome, _ in pool.collect(targets, script, SessionOptions(), 2)}
    assert isinstance(found["a"], HostFacts)
    assert isinstance(found["b"], HostFacts)
    assert found["surprise"].state == "internal error"
    assert "RuntimeError: (password) \\x1b[31m" in found["surprise"].message
    assert (found["-x"].state, found["k8s"].state) == ("unresolved", "unsupported")
    assert {"internal error", "unresolved", "unsupported"} <= set(STATES)


def test_no_password_stays_in_what_a_host_said():
    def fail():
        raise UnreachableError("become failed", "sudo: login-word and sudo-word are wrong")

    target = Target("gpu1", password="login-word", become_password="sudo-word")
    found = Connector(None, SessionOptions(), "auto").outcome(target, fail)
    assert (found.state, found.message) == ("become failed", "sudo: (password) and (password) are wrong")


def test_no_more_hosts_than_forks_at_a_time():
    busy, most = set(), []

    def script(target):
        busy.add(target.name)
        most.append(len(busy))
        time.sleep(0.05)
        busy.discard(target.name)
        return script_for(target)

    assert len(list(pool.collect([here(f"h{n}") for n in range(6)], script, SessionOptions(), 2))) == 6
    assert max(most) <= 2


def test_a_thread_that_never_returns_costs_its_host_alone(monkeypatch):
    monkeypatch.setattr(pool, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(pool, "ENDING_SECONDS", 0.2)
    never = threading.Event()

    def script(target):
        if target.name == "stuck":
            never.wait()
        return script_for(target)

    found = {
        target.name: outcome
        for target, outcome, _ in pool.collect([here("stuck"), here("b")], script, SessionOptions(seconds=5.0), 1)
    }
    never.set()
    assert (found["stuck"].state, found["b"].facts["host.arch"].value) == ("deadline", os.uname().machine)


def test_nothing_of_a_local_probe_outlives_its_deadline(tmp_path):
    slow = tmp_path / "python3"
    slow.write_text("#!/bin/sh\nsleep 61 & sleep 61\n")
    slow.chmod(0o755)
    targets = [here("a", python=str(slow)), here("b", python=str(slow))]
    found = [outcome.state for _, outcome, _ in pool.collect(targets, script_for, SessionOptions(seconds=0.7), 2)]
    assert found == ["deadline", "deadline"]
    end = time.monotonic() + 5  # what was killed takes a moment to be gone
    while sleepers() and time.monotonic() < end:
        time.sleep(0.05)
    assert sleepers() == []


def sleepers():
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and command(pid) == b"sleep\x0061\0"]


def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return stream.read()
    except OSError:
        return b""


@contextlib.contextmanager
def unanswering():
    """A port that takes connections for others: its queue is full, so that the kernel leaves new ones unanswered."""
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            other = held.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.parametrize(("deadline", "most"), [(0.6, 10.0), (30.0, 0.7)])
def test_a_silent_port_is_reported_with_its_timeout(deadline, most):
    with unanswering() as port, pytest.raises(UnreachableError) as caught:
        sockets.tcp(Settings("gpu1", "127.0.0.1", port), Target("gpu1"), Deadline(deadline), most)
    said = re.search(r"did not answer within (\S+) s: is the host up", caught.value.message)
    assert caught.value.state == "unreachable"
    assert float(said[1]) < 10


@pytest.mark.parametrize(("host", "after"), [("127.0.0.1", "connecting"), ("", "resolving the name")])
def test_a_name_that_is_being_resolved_is_the_stage(monkeypatch, host, after):
    seen, deadline, resolve = [], Deadline(10), socket.getaddrinfo
    deadline.stage = "connecting"
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *given: seen.append(deadline.overdue().message) or resolve(*given)
    )
    with unanswering() as port, pytest.raises(UnreachableError):
        sockets.tcp(Settings("gpu1", host or "no-such-host.invalid", port), Target("gpu1"), deadline, 0.1)
    assert "was resolving the name" in seen[0]
    assert deadline.stage == after


def test_srun_gets_its_hosts_in_order_without_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with srun.host_file(["n02", "n01"]) as (path, handle):
        reader = srun.start(["/bin/sh", "-c", 'cat "$ORDER" "$ORDER"; ls -A "$TMPDIR"'], {"ORDER": path}, [handle])
    assert reader.communicate() == (b"n02\nn01\n" * 2, b"")


def test_sudo_is_left_out_by_whoever_is_that_user_already():
    import pwd

    me = pwd.getpwuid(os.geteuid()).pw_name
    assert not local.becomes_another(here(become=True, become_user=me))
    assert local.becomes_another(here(become=True, become_user="daemon"))
    assert not local.becomes_another(here())


def test_a_deadline_closes_what_comes_after_its_end_at_once():
    closed = []
    life = Deadline(10)
    life.on_end(lambda: closed.append("first"))
    life.cut()
    life.on_end(lambda: closed.append("late"))
    assert closed == ["first", "late"]
    with pytest.raises(UnreachableError) as caught:
        life.left()
    assert caught.value.state == "deadline"
