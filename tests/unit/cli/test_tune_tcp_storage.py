"""`nodetune tune tcp` and `tune storage`: a mistake costs one line, and no host is asked."""

import pytest

from tests.support.commandline import nodetune


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tcp -i localhost", "sysctls of both hosts change during the measurement: allow this with --allow-settings"),
        ("tcp -i localhost --allow-settings", "1 host: TCP tuning needs exactly two, as in -l HOST,HOST"),
        ("tcp -i a,b,c --allow-settings", "3 hosts: TCP tuning needs exactly two"),
        ("storage --disk /tmp", "settings of the host change during the measurement: allow this with --allow-settings"),
        ("storage --allow-settings", "nodetune: missing option '--disk': see nodetune tune storage --help\n"),
        ("storage --disk /tmp --allow-settings --size 1MiB", "write 64MiB to 64GiB, such as 1GiB"),
        ("storage --disk /tmp --allow-settings --size many", "write 64MiB to 64GiB, such as 1GiB"),
        ("storage -i a,b --disk /tmp --allow-settings", "2 hosts: storage is tuned on one host at a time"),
        ("storage --disk tmp --allow-settings", "tmp: give the absolute path of a folder"),
    ],
)
def test_a_mistake_is_told_in_one_line(words, said, tmp_path):
    done = nodetune("tune", *words.split(), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
