"""What boots a host outlives a full /boot, and a RAM disk that dracut made has the files that it needs."""

import os
import subprocess

import pytest

VERSION = "6.1.0-56-amd64"
UPDATE_GRUB = """#!/bin/sh
set -e
cd {boot}/grub
head -c 9000 /dev/zero | tr '\\0' 'x' > grub.cfg.new
: > grub.cfg
cat grub.cfg.new > grub.cfg
rm grub.cfg.new
"""
"""As grub-mkconfig of GRUB 2.06 does: seen to leave half a menu on a full /boot."""

DRACUT = """#!/bin/sh
cp /dev/stdin {image} <<END || {{ rm -f {image}; echo "Creation of {image} failed" >&2; exit 1; }}
$(head -c 60000 /dev/zero | tr '\\0' 'y')
END
"""
"""As dracut 059 does, also with the image that was there."""


@pytest.fixture
def boot(tmp_path, monkeypatch):
    """A file system of 1 MiB with grub.cfg and the RAM disk of one kernel."""
    boot = tmp_path / "boot"
    boot.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", boot], capture_output=True).returncode
    )
    if not mounted:
        pytest.skip("no file system can be mounted here")
    try:
        (boot / "grub").mkdir()
        (boot / "grub/grub.cfg").write_text("old\n" * 2000)
        (boot / f"initrd.img-{VERSION}").write_text("old\n" * 10000)
        (tmp_path / "modules" / VERSION).mkdir(parents=True)
        monkeypatch.setattr("nodetune_host.handler.RAM_DISKS", f"{boot}/init*")
        monkeypatch.setattr("nodetune_host.handler.MODULES", f"{tmp_path}/modules")
        monkeypatch.setattr("nodetune_host.handler.GRUB_CONFIGS", (f"{boot}/grub/grub.cfg",))
        monkeypatch.setattr("nodetune_host.handler.MODPROBE", f"{tmp_path}/nodetune-{{}}.conf")
        yield boot
    finally:
        subprocess.run(["umount", "-l", boot], check=True)


def fill(boot, free):
    space = os.statvfs(boot)
    (boot / "filling").write_bytes(b"\0" * (space.f_bavail * space.f_frsize - free))


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Plant a tool of this host: tool(name, script)."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setattr("nodetune_host.command.TOOL_PATH", f"{folder}:/usr/bin:/bin")

    def plant(name, text):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    return plant


def group(tmp_path, handler, content="blacklist nouveau\n"):
    file = {"change": "file", "path": str(tmp_path / "nodetune-nouveau.conf"), "content": content}
    return [file, {"change": "run", "run": handler}]


@pytest.mark.parametrize(("handler", "name"), [("update-grub", "update-grub"), ("initramfs", "dracut")])
@pytest.mark.parametrize("free", range(0, 24 << 10, 4 << 10))
def test_a_full_boot_loses_nothing_and_is_named(do, boot, tmp_path, tool, handler, name, free):
    image = boot / f"initrd.img-{VERSION}"
    tool("update-grub", UPDATE_GRUB.format(boot=boot))
    tool("dracut", DRACUT.format(image=image))
    file = boot / "grub/grub.cfg" if handler == "update-grub" else image
    before = file.read_bytes()
    fill(boot, free)
    (problem,) = do(group(tmp_path, handler), checks=["x"]).problems
    assert problem["checks"] == ["x"]
    assert problem["message"].startswith(f"{name} was not run: it needs ")
    assert f" KiB next to {file}, and " in problem["message"]
    assert file.read_bytes() == before
    told = do.back().problems
    assert [each["label"] for each in told] == [handler], "the file is back, and the tool is owed"
    assert not (tmp_path / "nodetune-nouveau.conf").exists()
    assert file.read_bytes() == before
    (boot / "filling").unlink()
    assert do.back(own="back-2").problems == []
    assert file.read_bytes() != before, "what is owed is made up for"
    file.write_bytes(before)
    assert do(group(tmp_path, handler), run="run-2").problems == []
    assert file.read_bytes() != before


LISTED = "-rw-r--r-- 1 root root 99 Nov 26 17:20 usr/lib/modules/6.1/kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz"


@pytest.mark.parametrize(
    ("listed", "told"),
    [(LISTED, True), (LISTED + "\n-rw-r--r-- 1 root root 18 Nov 26 17:20 {file}", False), ("", False)],
)
def test_a_ram_disk_with_a_module_needs_its_file(do, boot, tmp_path, tool, listed, told):
    """Of dracut for any host: seen with Debian's, which leaves out /etc/modprobe.d without hostonly=yes."""
    tool("dracut", "#!/bin/sh\n")
    tool("lsinitrd", f"#!/bin/sh\necho '{listed.format(file=str(tmp_path)[1:] + '/nodetune-nouveau.conf')}'\n")
    problems = [each["message"] for each in do(group(tmp_path, "initramfs")).problems]
    assert len(problems) == told
    assert all("has the module nouveau without " in each and "install_optional_items+=" in each for each in problems)
