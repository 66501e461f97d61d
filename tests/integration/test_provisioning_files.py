"""What provisioning systems take from packaging/provisioning: judged by cloud-init itself, and read as MAAS and Warewulf read it."""

import re
import shutil
import stat
import subprocess

import pytest
import yaml

from tests.support.pages import ROOT

FILES = ROOT / "packaging/provisioning"
MARK = re.compile(r"\s*#\s*-+\s*(Start|End) MAAS (\d+\.\d+) script metadata\s+-+", re.IGNORECASE)
FIELDS = {"name", "title", "description", "script_type", "hardware_type", "timeout", "packages", "results"}
STATUSES = ("passed", "failed", "degraded", "skipped")

pytestmark = pytest.mark.full


def about(path):
    """The header of a script, by the rules of MAAS (src/maasserver/forms/script.py there)."""
    first, *lines = path.read_text().splitlines()
    assert first.startswith("#!/")
    begin, end = (number for number, line in enumerate(lines) if MARK.search(line))
    assert {MARK.search(lines[each])[2] for each in (begin, end)} == {"1.0"}
    return yaml.safe_load("\n".join(line.split("#", 1)[1] for line in lines[begin + 1 : end]))


@pytest.mark.skipif(not shutil.which("cloud-init"), reason="cloud-init is not installed: apt install cloud-init")
def test_cloud_init_finds_its_data_valid(tmp_path):
    good, bad = FILES / "cloud-config.yml", tmp_path / "bad.yml"
    bad.write_text(good.read_text().replace("runcmd:", "runcmd: 7\nx:"))
    codes = [subprocess.run(["cloud-init", "schema", "--config-file", each]).returncode for each in (good, bad)]
    assert codes[0] == 0
    assert codes[1] != 0


@pytest.mark.parametrize(("name", "kind"), [("maas-commissioning.sh", "commissioning"), ("maas-testing.sh", "testing")])
def test_maas_understands_the_header(name, kind):
    path = FILES / name
    found = about(path)
    assert path.stat().st_mode & stat.S_IXUSR
    assert set(found) <= FIELDS
    assert found["script_type"] == kind
    assert found["packages"]["url"].endswith(".deb")
    assert all(set(each) <= {"title", "description"} and each["title"] for each in found.get("results", {}).values())
    subprocess.run(["sh", "-n", path], check=True)


@pytest.mark.parametrize(
    ("code", "said", "status", "ends"),
    [
        (0, "OK: 41 checks", "passed", 0),
        (1, 'gpu-lost: GPU 3\'s link\\ is gone: "x"', "failed", 1),
        (2, "inconclusive: no driver", "degraded", 0),
        (127, "the guard did not run: is its package installed?", "failed", 1),
    ],
)
def test_the_result_of_a_maas_test_is_the_verdict_of_the_guard(code, said, status, ends, tmp_path):
    (tmp_path / "said").write_text(said + "\n")
    guard = tmp_path / "check"
    guard.write_text(f"#!/bin/sh\ncat {tmp_path}/said\nexit {code}\n")
    guard.chmod(0o755)
    script = tmp_path / "test.sh"
    script.write_text((FILES / "maas-testing.sh").read_text().replace("/usr/lib/nodetune/guard/check", str(guard)))
    results = tmp_path / "results.yaml"
    done = subprocess.run(
        ["sh", script], env={"PATH": "/usr/bin:/bin", "RESULT_PATH": str(results)}, capture_output=True
    )
    assert (done.returncode, done.stdout.decode()) == (ends, said + "\n")
    found = yaml.safe_load(results.read_text())
    assert found == {"status": status, "results": {"verdict": said}}
    assert status in STATUSES
    assert set(found["results"]) == set(about(FILES / "maas-testing.sh")["results"])


RENDER = """
package main

import (
	"errors"
	"os"
	"text/template"
)

func main() {
	aborted := errors.New("abort")
	known := template.FuncMap{"abort": func() (string, error) { return "", aborted }}
	made := template.Must(template.New("overlay").Option("missingkey=default").Funcs(known).Parse(os.Args[1]))
	tags := map[string]string{}
	if len(os.Args) > 2 {
		tags["nodetune_facts"] = os.Args[2]
	}
	err := made.Execute(os.Stdout, struct{ Tags map[string]string }{tags})
	if errors.Is(err, aborted) {
		os.Exit(3)
	}
	if err != nil {
		panic(err)
	}
}
"""


@pytest.mark.skipif(not shutil.which("go"), reason="Go is not installed: apt install golang-go")
def test_the_template_of_warewulf_is_a_unit_that_systemd_takes(tmp_path):
    """By the rules of Warewulf 4.7 (internal/pkg/overlay there): Go's templates, and abort writes no file."""
    text = (FILES / "var-lib-nodetune-facts.mount.ww").read_text()
    (tmp_path / "render.go").write_text(RENDER)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GOFLAGS": "-mod=mod"}
    subprocess.run(["go", "build", "-o", "render", "render.go"], cwd=tmp_path, env=env, check=True)
    said = [
        subprocess.run([tmp_path / "render", text, *tag], capture_output=True, text=True)
        for tag in (["nfs1:/facts"], [])
    ]
    assert [(each.returncode, each.stderr) for each in said] == [(0, ""), (3, "")]
    assert "What=nfs1:/facts\n" in said[0].stdout
    assert said[1].stdout == ""
    unit = tmp_path / "var-lib-nodetune-facts.mount"
    unit.write_text(said[0].stdout)
    judged = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (judged.returncode, judged.stderr) == (0, "")
