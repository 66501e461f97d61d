"""The hosts of a run, and what can go wrong on the way to them. Plain values."""

from dataclasses import dataclass, field


class UnreachableError(Exception):
    """The reason why a host could not be probed: `state` is one of those in docs/troubleshooting.md, `message` has the cause and the fix."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state
        self.message = message


@dataclass(frozen=True)
class Target:
    """One host to reach. `name` is its name in reports; the rest are Ansible's connection variables, resolved.

    `key_file` and `ssh_args` are additions of the inventory to the user's OpenSSH configuration. `groups` are the
    inventory's groups of the host without `all`; `ranks` are all groups with depth and priority, by which Ansible
    orders them (None: no inventory). `problem` says which of its variables cannot be read; it is not reached then.
    """

    name: str
    address: str = ""
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    password: str | None = field(default=None, repr=False)
    connection: str = "ssh"
    ssh_args: tuple[str, ...] = ()
    python: str = "python3"
    become: bool = False
    become_user: str = "root"
    become_method: str = "sudo"
    become_password: str | None = field(default=None, repr=False)
    groups: tuple[str, ...] = ()
    ranks: tuple[tuple[str, int, int], ...] | None = None
    problem: str = ""
    problem_state: str = "bad variables"

    def check(self) -> None:
        """Raise UnreachableError if the inventory has no usable variables for the host."""
        if self.problem:
            raise UnreachableError(self.problem_state, self.problem)
