#!/usr/bin/python
"""Carries out one group of changes on this host, each written down before it is done."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import session
from ansible.module_utils.nodetune_host.core import Result
from ansible.module_utils.nodetune_host.problem import WaitError, reported

DOCUMENTATION = """
module: nodetune_change
short_description: Carry out a group of changes
description:
  - Makes the changes in their order. C(problems) lists what cannot be changed; the next change is made.
  - C(waits) is why the guard refuses. Fails only when nothing more may be done on this host.
options:
  run: {description: Name of the run. It must hold the lock (nodetune_begin)., type: str, required: true}
  group: {description: Name of the group., type: str, default: ""}
  changes: {description: The changes., type: list, elements: dict, required: true}
  checks: {description: Checks that the changes are for where a change names none., type: list, elements: str}
  guard: {description: What must hold now. C(gpu_idle) wants no process that computes on a GPU., type: dict}
  earlier: {description: Groups that come before this one. Only looked at in check mode., type: list, elements: dict}
"""


def main():
    options = {
        "run": {"type": "str", "required": True},
        "group": {"type": "str", "default": ""},
        "changes": {"type": "list", "elements": "dict", "required": True},
        "checks": {"type": "list", "elements": "str", "default": []},
        "guard": {"type": "dict", "default": {}},
        "earlier": {"type": "list", "elements": "dict", "default": []},
    }
    module = AnsibleModule(options, supports_check_mode=True)
    given = module.params
    group = {name: given[name] for name in ("group", "changes", "checks", "guard")}
    result = Result()
    with reported(module, result):
        try:
            if module.check_mode:
                session.dry_run(given["run"], group, given["earlier"], result)
            else:
                session.change(given["run"], group, result)
        except WaitError as waits:
            module.exit_json(waits=str(waits), **result.data())
    module.exit_json(**result.data())


if __name__ == "__main__":
    main()
