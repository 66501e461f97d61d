#!/usr/bin/python
"""Confirms changes that would otherwise revert on their own. Called over a new connection, which is the proof."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import session
from ansible.module_utils.nodetune_host.problem import options, reported

DOCUMENTATION = """{
 "module": "nodetune_confirm",
 "short_description": "Keep the link changes of a run",
 "options": {"run": {"description": "Name of the run. It must hold the lock (nodetune_begin).", "type": "str", "required": true}}
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=False)
    with reported(module):
        confirmed = session.confirm(module.params["run"])
    module.exit_json(changed=False, confirmed=confirmed)


if __name__ == "__main__":
    main()
