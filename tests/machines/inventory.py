"""An Ansible inventory of machines, which nodetune reads too, with their host keys next to it."""

from pathlib import Path

import yaml

from tests.machines.machine import Machine


def write(path: Path, machines: list[Machine], *, user: str = "root", **variables) -> Path:
    """Write the inventory to `path` and known_hosts next to it; `variables` hold for all hosts. Returns `path`.

    For `op`, sudo wants a password: pass ansible_become=True and ansible_become_password=place.OP_PASSWORD.
    """
    known = path.with_suffix(".known_hosts")
    known.write_text("".join(f"[{each.address}]:{each.port} {each.image.host_key}\n" for each in machines))
    common = {
        "ansible_user": user,
        "ansible_ssh_private_key_file": str(machines[0].image.login_key),
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o GlobalKnownHostsFile=/dev/null",
        **variables,
    }
    hosts = {each.name: {"ansible_host": each.address, "ansible_port": each.port} for each in machines}
    path.write_text(yaml.safe_dump({"gpu": {"hosts": hosts, "vars": common}}))
    return path
