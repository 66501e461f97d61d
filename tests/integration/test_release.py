"""The files of make release: built twice, installed in each way, without network, with the oldest dependencies; signed.

Packages come from PyPI, or the index that pip and uv are configured for.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from roots import run

BIN = Path(sys.executable).parent
OFFLINE = ("unshare", "--map-root-user", "--net")
SUPPORTED = ("3.10", "3.11", "3.12", "3.13", "3.14")

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800), pytest.mark.xdist_group("release")]


def pythons():
    """Every supported Python that this machine has."""
    for version in SUPPORTED:
        asked = f"import sys, venv; sys.exit('{version}' != '%d.%d' % sys.version_info[:2])"
        for each in (shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")):
            if each and subprocess.run([each, "-c", asked], capture_output=True).returncode == 0:
                yield pytest.param(each, id=version)
                break


EVERY_PYTHON = pytest.mark.parametrize("python", list(pythons()))


def audits(*program, cwd):
    """The program audits saved facts with a site file, and this machine, and warns of nothing."""
    (cwd / "site.yml").write_text("checks: {swappiness-high: off}\n")
    for words in (("--facts", "h200-x4", "--site", "site.yml"), ()):
        done = run(*program, "audit", "--format", "json", "--fail-on", "never", *words, cwd=cwd, codes=(0, 3))
        assert done.stderr == ""
        (host,) = json.loads(done.stdout)["hosts"]
        assert host["state"] == "ok"
        assert len(host["findings"]) > 100


def works(program, cwd):
    """It also reads an inventory, looks for a host by paramiko, and reaches Ansible."""
    audits(program, cwd=cwd)
    (cwd / "hosts.ini").write_text("[gpu]\nnode1 ansible_host=127.0.0.1 ansible_port=1\n")
    done = run(program, "audit", "-i", "hosts.ini", cwd=cwd, codes=(3,))
    assert re.search(r"refused +node1", done.stdout)
    assert done.stderr == ""
    if not os.geteuid():
        assert "nothing was changed" in run(program, "apply", "--dry-run", cwd=cwd, codes=(0, 1, 3)).stdout.lower()


@pytest.fixture(scope="module")
def wheel(dist):
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="module")
def bundle(dist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    run("tar", "xf", *dist.glob("*-bundle.tar.gz"), "-C", folder)
    return next(folder.iterdir())


def digests(folder):
    return {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir() if each.suffix != ".sig"
    }


def test_a_second_release_elsewhere_has_the_same_bytes(checkout, dist, tmp_path):
    other = tmp_path / "an other place"
    run("git", "clone", "-q", checkout, other, umask=0o077)
    (other / "stray.py").write_text("not committed")
    for each in (each for each in other.rglob("*") if ".git" not in each.parts and not each.is_symlink()):
        os.utime(each, (1e9, 1e9))
    env = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    run(sys.executable, other / ".ci/release.py", env=env, umask=0o077)
    assert digests(other / "dist") == digests(dist)


def test_the_chart_and_the_images_are_of_the_release(checkout, dist, wheel, tmp_path):
    version = wheel.name.split("-")[1]
    for each in (*dist.glob("nodetune-*.tgz"), *dist.glob("*-images.tar.gz")):
        run("tar", "xf", each, "-C", tmp_path)
    about = (tmp_path / "nodetune/Chart.yaml").read_text()
    assert f"appVersion: {version}\n" in about
    assert f"version: {version.replace('.dev', '-dev.')}\n" in about
    names = {
        str(each.relative_to(checkout / "charts")) for each in checkout.glob("charts/nodetune/**/*") if each.is_file()
    }
    assert {str(each.relative_to(tmp_path)) for each in (tmp_path / "nodetune").rglob("*") if each.is_file()} == names
    images = tmp_path / f"nodetune-{version}-images"
    assert {each.name for each in images.iterdir()} == {
        "program.tar",
        *(each.name for each in (checkout / "image").iterdir()),
    }
    assert os.access(images / "build", os.X_OK)
    assert version in run("tar", "xOf", images / "program.tar", "opt/nodetune/nodetune/__init__.py").stdout


def test_the_checksums_are_right_and_signed(dist, signing_key, tmp_path):
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist)
    sums = (dist / "SHA256SUMS").read_bytes()
    assert len(sums.splitlines()) == len(list(dist.iterdir())) - 2, "all but the sums and the signature"
    (tmp_path / "signers").write_text(f"you@example.org {Path(f'{signing_key}.pub').read_text()}")
    verify = ("ssh-keygen", "-Y", "verify", "-f", tmp_path / "signers", "-I", "you@example.org", "-n", "file")
    signed = (*verify, "-s", dist / "SHA256SUMS.sig")
    assert subprocess.run(signed, input=sums).returncode == 0
    assert subprocess.run(signed, input=sums.replace(b"a", b"b")).returncode != 0


@EVERY_PYTHON
def test_the_bundle_installs_without_network(python, bundle, tmp_path):
    folder = tmp_path / "nodetune"
    run(
        *OFFLINE, "sh", bundle / "install.sh", folder, env={**os.environ, "PYTHON": python, "PIP_INDEX_URL": "http://x"}
    )
    works(folder / "bin" / "nodetune", tmp_path)


def test_the_bundle_refuses_a_wheel_that_was_changed(bundle, tmp_path):
    changed = shutil.copytree(bundle, tmp_path / "bundle")
    with next(changed.glob("wheels/click-*")).open("ab") as stream:
        stream.write(b"x")
    done = run("sh", changed / "install.sh", tmp_path / "nodetune", codes=(1,))
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_the_bundle_takes_no_folder_that_holds_something_else(bundle, tmp_path):
    (tmp_path / "kept").touch()
    done = run("sh", bundle / "install.sh", tmp_path, codes=(2,))
    assert done.stderr == f"install.sh: {tmp_path} exists and is no virtual environment: name another folder\n"
    assert (tmp_path / "kept").exists()


def test_the_sbom_lists_what_the_bundle_installs(dist, bundle, tmp_path):
    run("sh", bundle / "install.sh", tmp_path / "nodetune", env={**os.environ, "PYTHON": sys.executable})
    listed = json.loads(next(dist.glob("*.cdx.json")).read_text())
    assert listed["bomFormat"] == "CycloneDX"
    told = {(each["name"].lower(), each["version"]) for each in listed["components"]}
    code = "import importlib.metadata as m; print(*(f'{d.name.lower()} {d.version}' for d in m.distributions()), sep='\\n')"
    there = run(tmp_path / "nodetune/bin/python", "-c", code).stdout.splitlines()
    assert {tuple(line.split()) for line in there} <= told
    assert len(there) > 20


@EVERY_PYTHON
def test_the_zipapp_audits_on_every_python(python, dist, tmp_path):
    env = {**os.environ, "HOME": str(tmp_path)}
    run(python, dist / "nodetune.pyz", "--version", env=env)
    assert [each.name for each in tmp_path.iterdir()] == [".cache"], "it unpacks itself there once"
    audits(python, "-W", "error::DeprecationWarning", dist / "nodetune.pyz", cwd=tmp_path)


def test_the_package_of_the_zipapp_audits_and_leaves_nothing(dist, tmp_path):
    root, home = tmp_path / "root", tmp_path / "home"
    for name in ("info", "updates"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    (package,) = (each for each in dist.glob("*.deb") if each.name.startswith("nodetune_"))
    dpkg = ("dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless")
    run(*dpkg, "--install", package)
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home)}
    done = run(sys.executable, root / "usr/bin/nodetune", "audit", "--facts", "h100-x2", env=env, codes=(1,))
    assert "h100-x2" in done.stdout
    assert (root / "usr/bin/nodetune").read_bytes().startswith(b"#!/usr/bin/python3 ")
    run(*dpkg, "--purge", "nodetune")
    assert [path for path in root.rglob("*nodetune*") if not path.is_dir()] == []


def test_the_zipapp_audits_by_openssh(dist, farm, tmp_path):
    (tmp_path / "bin").mkdir()
    farm.script(tmp_path / "bin" / "ssh", f'exec {shutil.which("ssh")} -F {farm.config} "$@"')
    env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    hosts = ",".join(f"{each}:{farm.port}" for each in farm.good)
    done = run(dist / "nodetune.pyz", "audit", "-i", hosts, "--format", "json", env=env, codes=(0, 1, 3))
    assert [host["state"] for host in json.loads(done.stdout)["hosts"]] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("words", "library"),
    [
        (("audit", "-i", "hosts.ini"), "ansible-core"),
        (("audit", "-i", "127.0.0.1", "--transport", "paramiko"), "paramiko"),
        (("apply", "--dry-run"), "ansible_runner"),
    ],
)
def test_the_zipapp_names_the_library_that_it_lacks(dist, tmp_path, words, library):
    (tmp_path / "hosts.ini").write_text("node1\n")
    done = run(dist / "nodetune.pyz", *words, cwd=tmp_path, codes=(2,))
    (line,) = done.stderr.splitlines()
    assert f"{library}" in line
    assert "is not installed here (the zipapp has neither Ansible nor paramiko)" in line


def test_pipx_installs_the_wheel_and_leaves_nothing(wheel, tmp_path):
    home = {"PIPX_HOME": f"{tmp_path}/home", "PIPX_BIN_DIR": f"{tmp_path}/bin", "PIPX_MAN_DIR": f"{tmp_path}/man"}
    env = {**os.environ, **home, "PIPX_DEFAULT_PYTHON": sys.executable}
    run(BIN / "pipx", "install", wheel, env=env)
    assert (tmp_path / "man/man1/nodetune.1").exists()
    works(tmp_path / "bin" / "nodetune", tmp_path)
    run(BIN / "pipx", "uninstall", "nodetune", env=env)
    left = {each.name for each in tmp_path.rglob("*nodetune*")}
    assert left <= {".nodetune.lock"}, "pipx's own, which it keeps"


def test_uv_installs_the_wheel_as_a_tool_with_an_extra(wheel, tmp_path):
    env = {**os.environ, "UV_TOOL_DIR": f"{tmp_path}/home", "UV_TOOL_BIN_DIR": f"{tmp_path}/bin"}
    run(BIN / "uv", "tool", "install", "--python", sys.executable, f"nodetune[history] @ {wheel.as_uri()}", env=env)
    works(tmp_path / "bin" / "nodetune", tmp_path)
    run(tmp_path / "home/nodetune/bin/python", "-c", "import psycopg")
    run(BIN / "uv", "tool", "uninstall", "nodetune", env=env)
    assert not list(tmp_path.rglob("*nodetune*"))


def test_an_index_takes_wheel_and_sdist_by_the_command_of_the_guide(dist, wheel):
    taken = []

    class Index(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append(re.search(rb'filename="([^"]+)"', body)[1].decode())
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    sdist = dist / f"{wheel.name.removesuffix('-py3-none-any.whl')}.tar.gz"
    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as index:
        threading.Thread(target=index.serve_forever, daemon=True).start()
        login = ("--username", "you", "--password", "secret")
        url = f"http://127.0.0.1:{index.server_port}/"
        run(BIN / "uv", "publish", "--publish-url", url, *login, wheel, sdist)
        index.shutdown()
    assert sorted(taken) == sorted([wheel.name, sdist.name])


@EVERY_PYTHON
def test_the_oldest_dependencies_that_it_allows_are_enough(python, wheel, tmp_path):
    run(python, "-m", "venv", "--without-pip", tmp_path / "venv")
    lowest = ("--resolution", "lowest-direct", "--python", tmp_path / "venv/bin/python")
    run(BIN / "uv", "pip", "install", *lowest, f"nodetune[history,pytest] @ {wheel.as_uri()}")
    works(tmp_path / "venv/bin/nodetune", tmp_path)
    (tmp_path / "pytest.ini").touch()
    done = run(
        tmp_path / "venv/bin/python",
        "-m",
        "pytest",
        "--nodetune",
        "--nodetune-facts=h200-x4",
        cwd=tmp_path,
        codes=(0, 1),
    )
    assert re.search(r"\d+ passed", done.stdout)


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("buildah", "mmdebstrap"))),
    reason="the image of a controller takes root, buildah and mmdebstrap",
)
def test_the_image_of_a_controller_audits_over_ssh_as_an_ordinary_user(checkout, dist, farm, tmp_path):
    name = f"localhost/nodetune-test:{os.getpid()}"
    made = []
    for _ in range(2):
        said = run("sh", checkout / "image/controller", name).stdout
        made.append(json.loads(run("buildah", "inspect", "--type", "image", name).stdout)["FromImageID"])
    assert made[0] == made[1], "a second build has the same bytes"
    assert re.search(r"ansible_core \d.*\bopenssh-client 1:9|\bopenssh-client 1:9.*ansible_core \d", said, re.DOTALL)
    container = run("buildah", "from", name).stdout.strip()
    try:
        works_in(container, farm, tmp_path)
    finally:
        run("buildah", "rm", container)
        run("buildah", "rmi", name)


def works_in(container, farm, folder):
    """With the image's own user, folder and command, and with login and inventory mounted read-only."""
    about = json.loads(run("buildah", "inspect", container).stdout)["OCIv1"]["config"]
    assert about["User"] == "65532:65532"
    login, work = folder / "login", folder / "work"
    for each in (login, work):
        each.mkdir()
    shutil.copy(farm.key, login / "id_ed25519")
    shutil.copy(farm.known_hosts, login / "known_hosts")
    (login / "config").write_text(f"Host *\n User {farm.user}\n")
    for each in (login, *login.iterdir()):
        os.chown(each, 65532, 65532)
        each.chmod(0o700 if each.is_dir() else 0o600)
    hosts = "".join(f"n{number} ansible_host={each}\n" for number, each in enumerate(farm.good))
    (work / "hosts.ini").write_text(f"{hosts}[all:vars]\nansible_port={farm.port}\n")
    mounts = ("-v", f"{login}:/home/nodetune/.ssh:ro", "-v", f"{work}:/work:ro")
    inside = ("buildah", "run", "--isolation", "chroot", *mounts, container, "--")
    for transport in ("openssh", "paramiko"):
        asked = ("audit", "-i", "hosts.ini", "--transport", transport, "--format", "json")
        done = run(*inside, *about["Entrypoint"], *asked, codes=(0, 1, 3))
        found = json.loads(done.stdout)["hosts"]
        assert [(host["name"], host["state"]) for host in found] == [("n0", "ok"), ("n1", "ok")]
    run(*inside, "ansible-playbook", "--version")
    assert "Permission denied" in run(*inside, "touch", "/opt/nodetune/x", codes=(1,)).stderr
