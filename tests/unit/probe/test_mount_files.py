"""mounts.configured: where the options of network mounts stand."""

import pytest

MOUNTS = """36 1 0:60 / /data rw - nfs4 server:/data rw,vers=4.2,proto=tcp
37 1 0:61 / /auto/sets\\040a rw - nfs server:/sets rw,vers=3,proto=tcp
38 1 0:62 / /direct rw - nfs4 server:/direct rw,proto=tcp
39 1 8:1 / / rw - ext4 /dev/sda1 rw
"""


@pytest.fixture
def configured(tree, collect):
    def run(files):
        tree({"/proc/self/mountinfo": MOUNTS, **files})
        return collect("mounts")["mounts.configured"]["value"]

    return run


def test_fstab_is_read_with_octal_blanks_and_without_local_disks(configured):
    fstab = "# server:/data /data nfs nconnect=2 0 0\nserver:/data  /data/  nfs4 rw,nconnect=4 0 0\n/dev/sda1 / ext4 rw 0 1\n"
    assert configured({"/etc/fstab": fstab + "server:/sets /auto/sets\\040a nfs\n"}) == {
        "/data": {"file": "/etc/fstab", "line": 2, "key": None, "options": ["rw", "nconnect=4"]},
        "/auto/sets a": {"file": "/etc/fstab", "line": 4, "key": None, "options": []},
    }


def test_maps_of_the_automounter_name_keys(configured):
    files = {
        "/etc/auto.master": "+auto.master\n/auto file:/etc/auto.sets --timeout=60\n",
        "/etc/auto.master.d/x.autofs": "/- /etc/auto.direct\n",
        "/etc/auto.sets": "# all\n*  -fstype=nfs,hard  server:/&\n",
        "/etc/auto.direct": "/direct server:/direct\n",
    }
    assert configured(files) == {
        "/auto/sets a": {"file": "/etc/auto.sets", "line": 2, "key": "*", "options": ["fstype=nfs", "hard"]},
        "/direct": {"file": "/etc/auto.direct", "line": 1, "key": "/direct", "options": []},
    }


def test_programs_and_entries_of_several_lines_are_left_out(configured, tree):
    files = {
        "/etc/auto.master": "/auto /etc/auto.program\n/- /etc/auto.long\n/- yp:auto.direct\n/-\n",
        "/etc/auto.long": "/direct -rw \\\n  server:/direct\n",
    }
    (tree({"/etc/auto.program": "* server:/&\n"}) / "etc/auto.program").chmod(0o755)
    assert configured(files) == {}
