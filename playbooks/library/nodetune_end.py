#!/usr/bin/python
"""Ends a run on this host: closes its journal and releases the lock."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import session
from ansible.module_utils.nodetune_host.problem import options, reported

DOCUMENTATION = """{
 "module": "nodetune_end",
 "short_description": "End a run of nodetune on a host",
 "options": {"run": {"description": "Name of the run.", "type": "str", "required": true}}
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    with reported(module):
        if not module.check_mode:
            session.end(module.params["run"])
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
