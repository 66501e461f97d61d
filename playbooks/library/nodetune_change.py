#!/usr/bin/python
"""Makes one group of changes on this host, and records each before it is made."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import session
from ansible.module_utils.nodetune_host.core import Result
from ansible.module_utils.nodetune_host.problem import WaitError, options, reported

DOCUMENTATION = """{
 "module": "nodetune_change",
 "short_description": "Make a group of changes",
 "description": [
  "Makes the changes in order. C(problems) lists failed changes, after which it continues with the next.",
  "C(waits) is the guard's reason for a refusal. Fails only if nothing more may be done on this host."
 ],
 "options": {
  "run": {"description": "Name of the run. It must hold the lock (nodetune_begin).", "type": "str", "required": true},
  "group": {"description": "Name of the group.", "type": "str", "default": ""},
  "changes": {"description": "The changes.", "type": "list", "elements": "dict", "required": true},
  "checks": {"description": "Checks of the changes that do not name their own.",
             "type": "list", "elements": "str", "default": []},
  "guard": {"description": "Conditions. C(gpu_idle) allows no process that computes on a GPU.",
            "type": "dict", "default": {}},
  "earlier": {"description": "Groups before this one. Used only in check mode.",
              "type": "list", "elements": "dict", "default": []},
  "strict": {"description": "Fail if a change failed, or the guard refused. The other changes are made first.",
             "type": "bool", "default": false}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
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
            if given["strict"]:
                raise
            module.exit_json(waits=str(waits), **result.data())
        if given["strict"]:
            result.require_all()
    module.exit_json(**result.data())


if __name__ == "__main__":
    main()
