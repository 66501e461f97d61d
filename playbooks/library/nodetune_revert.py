#!/usr/bin/python
"""Undoes on this host what an earlier run did there. That is a run of its own, and can be rolled back."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import session
from ansible.module_utils.nodetune_host.core import Result
from ansible.module_utils.nodetune_host.problem import reported

DOCUMENTATION = """
module: nodetune_revert
short_description: Undo what a run did
description:
  - Restores files byte for byte and running values, last change first.
  - What somebody changed since is left alone; C(refused) lists it with its difference.
options:
  run: {description: Name of this run. It must hold the lock (nodetune_begin)., type: str, required: true}
  of: {description: The run that is rolled back., type: str, required: true}
  entries: {description: Its journal as the controller kept it. Used where the host has lost its own.,
            type: list, elements: dict}
  force: {description: Restore also what was changed since., type: bool, default: false}
  guard: {description: What must hold now. C(gpu_idle) wants no process that computes on a GPU., type: dict}
  guarded: {description: The groups that C(guard) is for; it counts where one of them did something. Empty means all.,
            type: list, elements: str}
  timed: {description: Only the groups with a change that reverts by itself unless confirmed, or only the others.,
          type: bool, required: true}
"""


def main():
    options = {
        "run": {"type": "str", "required": True},
        "of": {"type": "str", "required": True},
        "entries": {"type": "list", "elements": "dict", "default": []},
        "force": {"type": "bool", "default": False},
        "guard": {"type": "dict", "default": {}},
        "guarded": {"type": "list", "elements": "str", "default": []},
        "timed": {"type": "bool", "required": True},
    }
    module = AnsibleModule(options, supports_check_mode=True)
    given = module.params
    result = Result()
    with reported(module, result):
        session.revert(given, result, module.check_mode)
    module.exit_json(**result.data())


if __name__ == "__main__":
    main()
