#!/usr/bin/python
"""Undoes the changes of an earlier run on this host. This is a run of its own and can be rolled back."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import session
from ansible.module_utils.nodetune_host.core import Result
from ansible.module_utils.nodetune_host.problem import options, reported

DOCUMENTATION = """{
 "module": "nodetune_revert",
 "short_description": "Undo the changes of a run",
 "description": [
  "Restores files byte for byte and running values, last change first.",
  "Resources changed since are left alone; C(refused) lists them with their differences."
 ],
 "options": {
  "run": {"description": "Name of this run. It must hold the lock (nodetune_begin).", "type": "str", "required": true},
  "of": {"description": "The run to roll back.", "type": "str", "required": true},
  "after": {"description": "Runs that are rolled back before. In check mode, they are taken to be.",
            "type": "list", "elements": "str", "default": []},
  "entries": {"description": "The controller's copy of its journal. Used if the host has lost its own.",
              "type": "list", "elements": "dict", "default": []},
  "least": {"description": "How many entries the journal had, as far as the controller knows.", "type": "int", "default": 0},
  "force": {"description": "Also restore resources that were changed since.", "type": "bool", "default": false},
  "guard": {"description": "Conditions. C(gpu_idle) allows no process that computes on a GPU.",
            "type": "dict", "default": {}},
  "guarded": {"description": "The groups to which C(guard) applies, if one of them did something. Empty means all.",
              "type": "list", "elements": "str", "default": []},
  "timed": {
   "description": "Only the groups with a change that reverts on its own unless confirmed, or only the others.",
   "type": "bool", "required": true
  },
  "strict": {"description": "Fail if a resource was not reverted. The others are reverted first.",
             "type": "bool", "default": false}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    given = module.params
    result = Result()
    with reported(module, result):
        session.revert(given, result, module.check_mode)
        if given["strict"]:
            result.require_all()
    module.exit_json(**result.data())


if __name__ == "__main__":
    main()
