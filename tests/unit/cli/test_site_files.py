"""Site files on the command line: what they may ask for, how they stack, and how one is checked."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from nodetune.cli.main import group


def cli(*words):
    done = CliRunner().invoke(group, [*map(str, words)], env={"COLUMNS": "200"}, prog_name="nodetune")
    if done.exception and not isinstance(done.exception, (SystemExit, ValueError)):
        raise done.exception
    return done


@pytest.fixture
def site(tmp_path):
    def write(text, name="site.yml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_plan_of_this_host_refuses_a_parameter_that_does_not_exist(site):
    given = site("""
    add:
      - {id: site-lacks, sysctl: net.foo.bar, accept: 1, set: 1}
      - {id: site-has, sysctl: kernel.panic, accept: 7, set: 7}
    """)
    assert Path("/proc/sys/kernel/panic").is_file()
    plan = cli("plan", "--site", given, "-s", "site-*").output
    written, unsupported = plan.split("unsupported")
    assert "kernel.panic" in written
    assert "foo" not in written
    assert "net.foo.bar does not exist on this host (no /proc/sys/net/foo/bar): nothing is written" in unsupported
