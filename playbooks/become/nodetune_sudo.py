"""Ansible's sudo, also for sudo-rs (Ubuntu 26.04), whose prompt it does not see: https://github.com/ansible/ansible/issues/87423.

On the controller.
"""

from ansible.plugins.become import sudo

DOCUMENTATION = sudo.DOCUMENTATION.replace("name: sudo\n", "name: nodetune_sudo\n", 1)


class BecomeModule(sudo.BecomeModule):
    """Knows the words of sudo-rs, which prints `[sudo: PROMPT] Password: `."""

    fail = sudo.BecomeModule.fail + ("Authentication failed, try again.",)
    missing = sudo.BecomeModule.missing + ("sudo: interactive authentication is required",)

    def check_password_prompt(self, b_output):
        return bool(self.prompt) and self.prompt.strip().encode() in b_output
