"""Which hosts a command is about: names, node sets, limits, and Ansible inventories of every kind."""

import json
import os
import pty
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from nodetune.hosts import patterns
from nodetune.hosts.inventory import cache, programs
from nodetune.hosts.inventory.selection import targets
from nodetune.hosts.patterns import InventoryError
from nodetune.remediation.runs.connection import lasting_inventory

pytestmark = pytest.mark.slow  # each reads an inventory with Ansible, in a process of its own

SOURCE = str(Path(patterns.__file__).parents[2])
HOSTS = ["gpu001", "gpu002", "gpu003", "gpu010", "login1", "login2", "db.example"]
GROUPS = {
    "all": HOSTS,
    "gpu": HOSTS[:4],
    "login": HOSTS[4:6],
    "rack1": ["gpu001", "login1"],
    "ungrouped": ["db.example"],
}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """write("name", text) makes a file in the current folder."""
    monkeypatch.chdir(tmp_path)

    def make(name, text, mode=0o644):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return name

    return make


ONE = 'echo \'{"gpu": {"hosts": ["d1"]}, "_meta": {"hostvars": {}}}\'\n'

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away takes root")


def names(spec, limit=None):
    return [target.name for target in targets(spec, limit)]


def refused(spec, limit=None):
    with pytest.raises(InventoryError) as caught:
        targets(spec, limit)
    message = str(caught.value)
    assert "\n" not in message
    assert "Traceback" not in message
    return message


# Names and node sets


def test_without_an_inventory_it_is_this_host_alone():
    (target,) = targets(None)
    assert (target.connection, target.python) == ("local", sys.executable)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("gpu[001-003],login1", ["gpu001", "gpu002", "gpu003", "login1"]),
        ("gpu[1-2,5]", ["gpu1", "gpu2", "gpu5"]),
        ("b,a,b", ["b", "a"]),
        (" a , b ", ["a", "b"]),
        ("127.0.1.[1-2]", ["127.0.1.1", "127.0.1.2"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("::1", ["::1"]),
    ],
)
def test_hosts_are_named_by_commas_and_node_sets(spec, expected):
    assert names(spec) == expected


def test_more_hosts_may_be_named_than_a_path_has_characters():
    spec = ",".join(f"gpu{number:04}" for number in range(1000))
    assert len(names(spec)) == 1000
    assert lasting_inventory(spec) == spec


def test_a_name_may_carry_a_user_and_a_port():
    first, second, third = targets("root@gpu[1-2]:2222,[fe80::1]:22")
    assert (first.name, first.address, first.user, first.port) == ("gpu1", "gpu1", "root", 2222)
    assert second.name == "gpu2"
    assert (third.address, third.port) == ("fe80::1", 22)


def test_the_same_host_at_two_ports_is_two_hosts():
    assert names("h:22,h:2222") == ["h", "h:2222"]


@pytest.mark.parametrize(
    "spec",
    [
        "gpu[1-",
        "gpu1]",
        "-oProxyCommand=x",
        "a b",
        "@group",
        ",",
        "",
        " ",
        "h:99999",
        "gpu[1-999999999]",
        "a[1-300]b[1-300]",
        "gpu[x]",
    ],
)
def test_what_is_no_host_is_refused(spec):
    refused(spec)


def test_a_list_of_hosts_needs_no_ansible():
    code = "import sys; from nodetune.hosts.inventory.selection import targets; targets('gpu[1-9]', '!gpu3'); targets(None); assert 'ansible' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": SOURCE})


# Limits


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("all", HOSTS),
        ("gpu", HOSTS[:4]),
        ("gpu001", ["gpu001"]),
        ("gpu[001-003]", HOSTS[:3]),
        ("gpu[001-002,010],login1", ["gpu001", "gpu002", "gpu010", "login1"]),
        ("gpu:&rack1", ["gpu001"]),
        ("gpu,&rack1", ["gpu001"]),
        ("!gpu", HOSTS[4:]),
        ("gpu,!gpu[002-003]", ["gpu001", "gpu010"]),
        ("all:!login:!db.example", HOSTS[:4]),
        ("~(gpu|login).*1$", ["gpu001", "login1"]),
        ("login*", HOSTS[4:6]),
        ("*.example", ["db.example"]),
        ("gpu[0]", ["gpu001"]),
        ("gpu[-1]", ["gpu010"]),
        ("gpu[0:1]", ["gpu001", "gpu002"]),
        ("gpu[2:]", ["gpu003", "gpu010"]),
    ],
)
def test_a_limit_takes_patterns_and_node_sets(limit, expected):
    assert patterns.pick(limit, HOSTS, GROUPS) == expected


@pytest.mark.parametrize(
    "limit",
    [
        "nosuch",
        "gpu,nosuch",
        "gpu:!nosuch",
        "gpu[001-005]",
        "gpu[20-30]",
        "gpu:&login",
        "~(",
        "",
        ",",
        "!all",
        "@nosuchfile",
        "gpu[99]",
    ],
)
def test_a_limit_that_is_not_what_was_meant_is_refused(limit):
    with pytest.raises(InventoryError, match="limit"):
        patterns.pick(limit, HOSTS, GROUPS)


def test_a_limit_may_come_from_a_file(write):
    write("failed.retry", "gpu001\n# a remark\n\nlogin[1-2]\n")
    assert patterns.pick("@failed.retry", HOSTS, GROUPS) == ["gpu001", "login1", "login2"]


def test_limits_mean_what_they_mean_to_ansible(write):
    write("hosts.ini", "db.example\n[gpu]\ngpu[001:003]\ngpu010\n[login]\nlogin[1:2]\n[rack1]\ngpu001\nlogin1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader

        manager = InventoryManager(loader=DataLoader(), sources=["hosts.ini"])
        for limit in (
            "all",
            "*",
            "gpu",
            "gpu*",
            "gpu:login",
            "gpu:&rack1",
            "rack1,!gpu",
            "!gpu",
            "~gpu00[12]",
            "~.*1$",
            "gpu[0]",
            "gpu[1:2]",
            "gpu[-1]",
            "log*:&rack1",
            "db.example",
            "gpu?10",
            "gpu001,login2",
        ):
            manager.subset(limit)
            theirs = {host.name for host in manager.get_hosts("all")}
            assert set(names("hosts.ini", limit)) == theirs, limit


def test_a_host_list_is_limited_too():
    assert names("gpu[1-9]", "gpu[2-3],!gpu3") == ["gpu2"]


# Ansible inventories


def test_connection_variables_are_read_and_templated(write):
    write(
        "prod/hosts.yml",
        """
gpu:
  hosts:
    gpu[001:002]: {ansible_host: "10.0.0.{{ inventory_hostname[-1] }}"}
  vars:
    ansible_user: "{{ who }}"
    ansible_port: "22{{ 22 }}"
login:
  hosts:
    login1: {ansible_connection: local}
""",
    )
    write(
        "prod/group_vars/all.yml",
        """
who: bob
key: mine
ansible_ssh_private_key_file: "~/.ssh/{{ key }}"
ansible_ssh_pass: "{{ 'pa' + 'ss' }}"
ansible_become: "yes"
ansible_become_user: admin
ansible_become_password: sudo-pass
ansible_python_interpreter: /opt/python3
ansible_ssh_common_args: -o ProxyJump=bastion
ansible_ssh_extra_args: "-o 'IdentitiesOnly yes'"
""",
    )
    first, _, login = targets("prod")
    assert (first.name, first.address, first.port, first.user) == ("gpu001", "10.0.0.1", 2222, "bob")
    assert first.key_file.endswith("/.ssh/mine")
    assert not first.key_file.startswith("~")
    assert (first.password, first.become, first.become_user, first.become_password) == (
        "pass",
        True,
        "admin",
        "sudo-pass",
    )
    assert first.ssh_args == ("-o", "ProxyJump=bastion", "-o", "IdentitiesOnly yes")
    assert (first.python, first.groups) == ("/opt/python3", ("gpu",))
    assert login.connection == "local"
    assert "pass" not in repr(first).replace("password", "")


def test_an_ini_inventory_with_old_variable_names(write):
    write(
        "hosts",
        "a ansible_ssh_host=1.2.3.4 ansible_ssh_port=2 ansible_ssh_user=x "
        "ansible_connection=ansible.builtin.ssh\n[g:children]\nh\n[h]\nb ansible_python_interpreter=auto_silent\n",
    )
    a, b = targets("hosts")
    assert (a.address, a.port, a.user, a.connection) == ("1.2.3.4", 2, "x", "ssh")
    assert (b.groups, b.python) == (("g", "h"), "python3")


def test_variables_of_the_current_folder_are_not_the_inventorys(write, tmp_path, monkeypatch):
    write("hosts.ini", "[gpu]\na\n")
    write("group_vars/gpu.yml", "ansible_user: groupie\n")
    assert targets("hosts.ini")[0].user == "groupie"
    write("other/hosts.ini", "[gpu]\na\n")
    monkeypatch.chdir(tmp_path / "other")
    assert targets("hosts.ini")[0].user is None


def test_group_and_host_variables_next_to_the_inventory(write):
    write("hosts.ini", "[gpu]\na\nb\n")
    write("group_vars/gpu.yml", "ansible_user: groupie\n")
    write("host_vars/b.yml", "ansible_user: own\n")
    assert [target.user for target in targets("hosts.ini")] == ["groupie", "own"]


def test_a_script_is_asked_for_its_hosts(write):
    write(
        "dynamic",
        '#!/bin/sh\necho \'{"gpu": {"hosts": ["d1", "d2"], "vars": {"ansible_user": "zed"}}, "_meta": {"hostvars": {"d1": {"ansible_host": "1.2.3.4"}}}}\'\n',
        0o755,
    )
    first, second = targets("./dynamic")
    assert (first.name, first.address, first.user, second.address) == ("d1", "1.2.3.4", "zed", "d2")


@pytest.mark.parametrize("place", ["gpu001", "inventories/gpu001", "gpu001/hosts"])
def test_a_program_runs_only_where_its_path_is_given(write, tmp_path, place):
    write(place, f"#!/bin/sh\ntouch {tmp_path}/ran\n{ONE}", 0o755)
    written = place if "/" in place else f"./{place}"
    assert refused("gpu001").endswith(f"is a program: to run it as an inventory, write -i {written}")
    assert not (tmp_path / "ran").exists()
    assert names(written)
    assert (tmp_path / "ran").exists()


def test_a_binary_in_this_folder_does_not_run_by_its_name(write, tmp_path):
    shutil.copy(shutil.which("true"), tmp_path / "gpu001")
    assert "gpu001 is a program" in refused("gpu001")


def test_an_inventory_that_is_marked_executable_is_still_read(write):
    write("hosts.ini", "[gpu]\na\n", 0o755)
    assert names("hosts.ini") == ["a"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda folder: (folder / "dynamic").chmod(0o757), "every user can write"),
        (lambda folder: folder.chmod(0o777), "every user can write"),
        (lambda folder: os.chown(folder / "dynamic", 12345, -1), "belongs to user 12345"),
        (lambda folder: (os.chown(folder, -1, 12345), folder.chmod(0o770)), "the group 12345 can write"),
    ],
)
@as_root
def test_a_program_that_others_can_write_is_not_run(write, tmp_path, change, why):
    write("site/dynamic", f"#!/bin/sh\ntouch {tmp_path}/ran\n{ONE}", 0o755)
    change(tmp_path / "site")
    assert why in refused("site/dynamic")
    assert why in refused("./site")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("place", ["gpu001", "inventories/gpu001.yml"])
def test_a_name_finds_no_inventory_that_others_can_write(write, tmp_path, place):
    """Variables of an inventory may call programs: a host name must not make root read one of somebody's."""
    lookup = f"{{{{ lookup('pipe', 'touch {tmp_path}/ran; echo 1.2.3.4') }}}}"
    write(place, f'all: {{hosts: {{a: {{ansible_host: "{lookup}"}}}}}}\n')
    (tmp_path / place).chmod(0o666)
    written = place if "/" in place else f"./{place}"
    told = refused("gpu001")
    assert "every user can write" in told
    assert told.endswith(f"to use it as an inventory, write -i {written}")
    assert not (tmp_path / "ran").exists()
    assert names(written) == ["a"]


def test_a_file_named_with_its_ending_is_meant(write, tmp_path):
    write("hosts.ini", "a\n", 0o666)
    assert names("hosts.ini") == ["a"]


@as_root
def test_the_user_who_called_sudo_may_own_the_program(write, tmp_path, monkeypatch):
    write("dynamic", f"#!/bin/sh\n{ONE}", 0o755)
    os.chown(tmp_path / "dynamic", 12345, -1)
    monkeypatch.setenv("SUDO_UID", "12345")
    assert names("./dynamic")


@as_root
def test_an_ansible_cfg_that_others_can_write_is_ignored(write, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write("script", f"#!/bin/sh\ntouch {tmp_path}/ran\necho password\n", 0o755)
    write("ansible.cfg", "[defaults]\nremote_user = eve\nvault_password_file = script\n")
    os.chown(tmp_path / "ansible.cfg", 12345, -1)
    write("hosts.ini", "a\n")
    assert targets("hosts.ini")[0].user is None
    assert capfd.readouterr().err == f"nodetune: ansible.cfg is ignored: {tmp_path}/ansible.cfg belongs to user 12345\n"
    assert not (tmp_path / "ran").exists()
    write("home/.ansible.cfg", "[defaults]\nremote_user = own\n")
    assert targets("hosts.ini")[0].user == "own"


def test_a_plugin_configuration_is_run(write):
    write(
        "cluster.yml",
        "plugin: ansible.builtin.generator\nhosts: {name: '{{ kind }}{{ n }}'}\nlayers: {kind: [gpu], n: ['1', '2']}\n",
    )
    assert names("cluster.yml") == ["gpu1", "gpu2"]


def test_a_folder_of_inventories_is_one(write):
    write("site/a", "[x]\na\n")
    write("site/b.yml", "y: {hosts: {b: }}\n")
    write("site/README.md", "not an inventory")
    assert names("site") == ["a", "b"]
    assert names("site", "y") == ["b"]


def test_a_name_is_looked_up_under_inventories(write):
    write("inventories/prod.yml", "all: {hosts: {a: }}\n")
    write("inventories/lab/hosts", "b\n")
    assert names("prod") == names("inventories/prod.yml") == ["a"]
    assert names("lab") == ["b"]
    assert len(names("example")) == 9, "the bundled one"


def test_settings_of_ansible_cfg_count(write, capfd):
    write(
        "ansible.cfg",
        "[defaults]\nremote_user = cfg\nprivate_key_file = /keys/cfg\n[ssh_connection]\nssh_common_args = -o "
        "ProxyJump=cfg\n",
    )
    write("hosts.ini", "a\nb ansible_user=own\n")
    a, b = targets("hosts.ini")
    assert (a.user, a.key_file, a.ssh_args, b.user) == ("cfg", "/keys/cfg", ("-o", "ProxyJump=cfg"), "own")
    assert capfd.readouterr() == ("", "")


def test_a_broken_ansible_cfg_is_one_line(write):
    write("ansible.cfg", "[defaults\nremote_user = cfg\n")
    write("hosts.ini", "a\n")
    assert "ansible.cfg" in refused("hosts.ini")


def vault(text, password):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ansible.parsing.vault import VaultLib, VaultSecret

        return VaultLib().encrypt(text, VaultSecret(password)).decode()


def encrypted(text):
    """A YAML value that Ansible Vault encrypts."""
    lines = "\n".join("        " + line for line in vault(text, b"vault-pass").splitlines())
    return f"!vault |\n{lines}\n"


def test_a_vault_is_opened_with_the_password_file_of_ansible(write, monkeypatch):
    write("hosts.yml", f"all:\n  hosts:\n    a:\n      ansible_become_password: {encrypted('s3cret')}")
    assert "--vault-password-file" in targets("hosts.yml")[0].problem
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", write("pass.txt", "vault-pass\n"))
    assert targets("hosts.yml")[0].become_password == "s3cret"


def test_an_undecryptable_variable_fails_only_its_host(write):
    write("hosts.yml", f"all:\n  hosts:\n    a:\n      ansible_user: {encrypted('bob')}    b:\n")
    bad, good = targets("hosts.yml")
    assert (bad.name, good.name, good.problem) == ("a", "b", "")
    assert "ansible_user is encrypted with Ansible Vault" in bad.problem
    assert "\n" not in bad.problem


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ('ansible_host="{{ nope }}"', "ansible_host: 'nope' is undefined"),
        ("ansible_port=abc", "'abc'"),
        ('ansible_ssh_common_args="-o \'x"', "No closing quotation"),
        ("ansible_user=\"{{ lookup('file', 'missing') }}\"", "missing"),
    ],
)
def test_a_variable_without_a_value_fails_its_host_alone(write, capfd, variable, says):
    write("hosts.ini", f"good\nbad {variable}\n")
    good, bad = targets("hosts.ini")
    assert (good.address, good.problem) == ("good", "")
    assert bad.problem.startswith("in the inventory: ")
    assert says in bad.problem
    assert "\n" not in bad.problem
    assert capfd.readouterr() == ("", "")


def test_an_audit_continues_without_a_host_with_bad_variables(write):
    write("hosts.ini", 'good ansible_connection=local\nbad ansible_connection=local ansible_user="{{ nope }}"\n')
    words = ["audit", "-i", "hosts.ini", "-s", "max-map-count-low", "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-m", "nodetune", *words], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "")
    bad, good = json.loads(done.stdout)["hosts"]
    assert (good["name"], good["state"]) == ("good", "ok")
    assert (bad["name"], bad["state"]) == ("bad", "bad variables")
    assert bad["message"] == "in the inventory: ansible_user: 'nope' is undefined"


def test_a_host_left_out_by_the_limit_may_be_broken(write):
    write("hosts.ini", "good\nbad ansible_port=abc\n")
    assert [target.problem for target in targets("hosts.ini", "!bad")] == [""]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("broken.yml", "all:\n  hosts:\n a: b: c\n", "broken.yml line 3: "),
        ("list.yml", "all: [1, 2]\n", "list.yml"),
        ("scalar.yml", "hello\n", "scalar.yml"),
        ("aws_ec2.yml", "plugin: amazon.aws.aws_ec2\n", "unknown plugin"),
        ("bad.ini", "[a]\nx foo bar\n", "Expected key=value"),
        ("section.ini", "[a\nx\n", "section.ini line 1: '[a' lacks a bracket"),
        ("vars.ini", "[a]\nx\n# [\n[a:vars\nb=1\n", "vars.ini line 4: '[a:vars' lacks a bracket"),
        ("range.ini", "[a]\ngpu[001:003 ansible_user=x\n", "range.ini line 2: 'gpu[001:003' lacks a bracket"),
        ("empty.ini", "", "lists no host"),
        ("binary", "\0\1\2", "binary"),
        ("broken.json", '{"all": ', "broken.json"),
    ],
)
def test_a_broken_inventory_is_one_line_that_says_what_and_where(write, capfd, name, text, says):
    write(name, text)
    assert says in refused(f"./{name}")
    assert capfd.readouterr() == ("", "")


def test_a_script_that_fails_is_not_read_as_a_list_of_hosts(write):
    write("dynamic", "#!/bin/sh\nexit 3\n", 0o755)
    assert "nventory script" in refused("./dynamic")
    write("chatty", "#!/bin/sh\necho hello\n", 0o755)
    refused("./chatty")


@pytest.mark.parametrize("ending", ["exit 3", "echo hello", "exit 0"])
def test_the_last_words_of_a_failing_script_are_in_the_error(write, capfd, ending):
    write("dynamic", f"#!/bin/sh\necho first >&2; echo boo >&2; {ending}\n", 0o755)
    assert refused("./dynamic").startswith("dynamic: ")
    assert refused("./dynamic").endswith("; it said: boo")
    assert capfd.readouterr() == ("", "")


def test_what_a_script_that_works_complains_of_is_no_error(write):
    write("dynamic", '#!/bin/sh\necho boo >&2; echo \'{"gpu": {"hosts": ["d1"]}, "_meta": {"hostvars": {}}}\'\n', 0o755)
    assert names("./dynamic") == ["d1"]


def test_a_hanging_script_is_ended_with_its_children(write, tmp_path, monkeypatch):
    pids = tmp_path / "pids"

    class Clock:
        """Stands still until the script hangs, and runs fast from then on."""

        now = 0.0

        def monotonic(self):
            self.now += 200 * (pids.exists() and pids.read_text().count("\n") == 2)
            return self.now

    monkeypatch.setattr(programs, "time", Clock())
    write("dynamic", "#!/bin/sh\ntrap '' TERM\necho $$ > pids; sleep 97 & echo $! >> pids; wait\n", 0o755)
    assert refused("./dynamic") == "dynamic: no answer within 300 s: run it manually with --list"
    left = pids.read_text().split()
    assert len(left) == 2
    while any(map(alive, left)):  # a process that was killed takes a moment to end
        time.sleep(0.01)


def alive(pid):
    """Whether a process is there; one that has ended and that nobody has heard yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


LISTED = """#!/bin/sh
while [ ! -e go ]; do sleep 0.1; done
echo '{"gpu": {"hosts": ["d1"]}, "_meta": {"hostvars": {}}}'
"""


def test_a_terminal_says_that_a_slow_script_is_waited_for(write, tmp_path):
    write("dynamic", LISTED, 0o755)
    ours, theirs = pty.openpty()
    with listing(theirs) as running:
        os.close(theirs)
        shown = b""
        while b"waiting for the inventory dynamic (at most 300 s)" not in shown:
            shown += os.read(ours, 1000)
        (tmp_path / "go").touch()
        assert running.communicate(timeout=120)[0] == b"['d1']\n"
    assert os.read(ours, 1000).endswith(b"\r\x1b[K")


def test_elsewhere_a_slow_script_is_waited_for_in_silence(write, tmp_path):
    write("dynamic", f"#!/bin/sh\nsleep {programs.SILENT + 1}; touch go\n{LISTED}", 0o755)
    with listing(subprocess.PIPE) as running:
        assert running.communicate(timeout=120) == (b"['d1']\n", b"")


def listing(errors):
    """A process that prints the hosts of ./dynamic."""
    code = "from nodetune.hosts.inventory.selection import targets; print([each.name for each in targets('./dynamic')])"
    words = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)


def test_one_broken_file_of_a_folder_is_not_passed_over(write):
    write("site/a", "a\n")
    write("site/b.yml", "a: [\n")
    assert "site/b.yml" in refused("site")


def test_a_file_that_cannot_be_read_says_why(write, tmp_path):
    (tmp_path / "link.ini").symlink_to("nowhere")
    assert "link.ini" in refused("./link.ini")


def test_an_unknown_inventory_names_those_there_are(write):
    write("inventories/prod/hosts", "a\n")
    assert "example, prod" in refused("nosuch/hosts.yml")


def test_host_names_that_are_paths_are_kept_as_they_are(write):
    write("hosts.yml", 'all: {hosts: {"../../x": {ansible_host: 1.2.3.4}}}\n')
    assert targets("hosts.yml")[0].name == "../../x"


def test_a_thousand_hosts_are_read_in_seconds(write):
    write("hosts.ini", '[gpu]\ngpu[0001:1000] ansible_host=10.0.0.1\n[gpu:vars]\nansible_user="{{ who }}"\nwho=bob\n')
    assert len(targets("hosts.ini", "gpu[0001-0500]")) == 500


# The cache


STATIC = "[gpu]\ngpu1 ansible_host=10.0.0.1\n"
ANSIBLE_IS_NOT_STARTED = "Ansible is not started"


@pytest.fixture
def write_cached(write, monkeypatch, tmp_path):
    """The same as `write`; hosts.ini was read before, and Ansible cannot be started again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write("hosts.ini", STATIC)
    write("group_vars/gpu.yml", "ansible_user: bob\n")
    targets("hosts.ini")
    forbid(monkeypatch)
    return write


def forbid(monkeypatch):
    def ask(*_, **_more):
        raise InventoryError(ANSIBLE_IS_NOT_STARTED)

    monkeypatch.setattr(programs, "ask", ask)


def entries(tmp_path):
    return list((tmp_path / "cache").rglob("*.json"))


def test_a_plain_inventory_is_read_by_ansible_once(write_cached):
    (target,) = targets("hosts.ini")
    assert (target.name, target.address, target.user, target.groups) == ("gpu1", "10.0.0.1", "bob", ("gpu",))
    assert names("hosts.ini", "gpu") == ["gpu1"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts.ini", f"{STATIC}gpu2\n"),
        ("group_vars/gpu.yml", "ansible_user: eve\n"),
        ("group_vars/all/new.yml", "ansible_port: 2222\n"),
        ("host_vars/gpu1.yml", "ansible_user: eve\n"),
        ("ansible.cfg", "[defaults]\nprivate_key_file = /key\n"),
    ],
)
def test_ansible_reads_again_what_changed(write_cached, name, text):
    write_cached(name, text)
    assert refused("hosts.ini") == ANSIBLE_IS_NOT_STARTED


def test_ansible_reads_again_when_its_settings_change(write_cached, monkeypatch):
    monkeypatch.setenv("ANSIBLE_REMOTE_USER", "eve")
    assert refused("hosts.ini") == ANSIBLE_IS_NOT_STARTED


def test_ansible_reads_again_in_another_folder(write_cached, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert refused("../hosts.ini") == ANSIBLE_IS_NOT_STARTED


def test_ansible_reads_again_when_a_file_becomes_a_script(write_cached, tmp_path):
    (tmp_path / "hosts.ini").chmod(0o755)
    assert refused("hosts.ini") == ANSIBLE_IS_NOT_STARTED


def test_a_cached_answer_of_another_user_is_not_believed(write_cached, tmp_path):
    if os.geteuid():
        pytest.skip("giving a file away takes root")
    for each in entries(tmp_path):
        os.chown(each, 12345, 12345)
    assert refused("hosts.ini") == ANSIBLE_IS_NOT_STARTED


def test_a_damaged_cache_entry_is_read_again(write, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write("hosts.ini", STATIC)
    targets("hosts.ini")
    for each in entries(tmp_path):
        each.write_text('{"digest": 1')
    assert names("hosts.ini") == ["gpu1"]


def test_a_cache_that_cannot_be_written_is_no_error(write, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    write("hosts.ini", STATIC)
    assert names("hosts.ini") == names("hosts.ini") == ["gpu1"]


@pytest.mark.parametrize(
    ("name", "text", "mode"),
    [
        ("hosts.ini", "a ansible_password=s3cret\n", 0o644),
        ("hosts.ini", "a ansible_become_password=s3cret\n", 0o644),
        ("hosts.ini", "a ansible_user=\"{{ lookup('env', 'USER') }}\"\n", 0o644),
        ("hosts.ini", "a ansible_ssh_private_key_file=$KEYS/id\n", 0o644),
        ("hosts.ini", "a\nb ansible_port=abc\n", 0o644),
        ("hosts.yml", "plugin: ansible.builtin.generator\nhosts: {name: a}\nlayers: {kind: [gpu]}\n", 0o644),
        ("hosts", '#!/bin/sh\necho \'{"all": {"hosts": ["a"]}, "_meta": {"hostvars": {}}}\'\n', 0o755),
    ],
)
def test_what_is_secret_or_may_change_by_itself_is_not_cached(write, monkeypatch, tmp_path, name, text, mode):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(name, text, mode)
    targets(f"./{name}")
    assert entries(tmp_path) == []


def test_what_a_vault_holds_is_not_cached(write, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", write("pass.txt", "vault-pass\n"))
    write("hosts.yml", f"all:\n  hosts:\n    a:\n      ansible_user: {encrypted('bob')}")
    assert targets("hosts.yml")[0].user == "bob"
    assert entries(tmp_path) == []


def test_a_variable_plugin_of_the_users_own_is_always_asked(write, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write("plugins/empty", "")
    write("ansible.cfg", "[defaults]\nvars_plugins = plugins\n")
    write("hosts.ini", STATIC)
    targets("hosts.ini")
    assert entries(tmp_path) == []


def test_the_cache_keeps_the_newest_answers(write, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "MAX_ENTRIES", 2)
    for number in range(8):
        path = Path(write(f"{number}.ini", STATIC))
        cache.store(path, lambda: {"fixed": True, "hosts": [], "groups": {}})
        assert cache.load(path), "the newest is there, whatever its file is called"
        for each in entries(tmp_path):
            os.utime(each, (number, number))
    assert len(entries(tmp_path)) == 2
