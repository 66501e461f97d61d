#!/usr/bin/python
"""Drains this node in Slurm, or resumes it if this run drained it."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import scheduler
from ansible.module_utils.nodetune_host.problem import options, reported

DOCUMENTATION = """{
 "module": "nodetune_drain",
 "short_description": "Drain this node in Slurm for a run of nodetune, or resume it",
 "description": "Does nothing on a node without slurmd. Does not wait; C(busy) says whether jobs still run.",
 "options": {
  "run": {"description": "The run that drains or resumes.", "type": "str", "required": true},
  "state": {"description": "The wanted state.", "type": "str", "required": true, "choices": ["drained", "resumed"]}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    run, busy = module.params["run"], ""
    if module.check_mode:
        module.exit_json(changed=False, busy=busy)
    with reported(module):
        if module.params["state"] == "drained":
            changed, busy = scheduler.drain(run)
        else:
            changed = scheduler.resume(run)
    module.exit_json(changed=changed, busy=busy)


if __name__ == "__main__":
    main()
