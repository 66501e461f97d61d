#!/usr/bin/python
"""Names a new run of a playbook on this host, and lists its runs that are not reverted."""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import session
from ansible.module_utils.nodetune_host.problem import options, reported

DOCUMENTATION = """{
 "module": "nodetune_runs",
 "short_description": "Name a run of a playbook, and list those to be reverted",
 "description": "C(run) is a new name. C(standing) lists the runs that changed something and are not reverted, newest first.",
 "options": {"subject": {"description": "What the names of the playbook's runs begin with.", "type": "str", "required": true}}
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    subject = module.params["subject"]
    with reported(module):
        found = session.standing(subject)
    now = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    module.exit_json(changed=False, run=f"{subject}-{now}", standing=found)


if __name__ == "__main__":
    main()
