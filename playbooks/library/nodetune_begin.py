#!/usr/bin/python
"""Takes the lock of this host for a run, and reports what interrupted runs did here."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import session
from ansible.module_utils.nodetune_host.problem import options, reported

DOCUMENTATION = """{
 "module": "nodetune_begin",
 "short_description": "Begin a run of nodetune on a host",
 "description": "Takes the lock, and reports runs that were interrupted. In check mode it only reports.",
 "options": {
  "run": {"description": "Name of the run.", "type": "str", "required": true},
  "controller": {"description": "The user and machine of the run, for the message to another run.",
                 "type": "str", "default": "unknown"},
  "take_over": {"description": "Runs that are known to have ended (separated by blanks) whose lock may be taken.",
                "type": "str", "default": ""}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    given = module.params
    with reported(module):
        found = session.begin(given["run"], given["controller"], given["take_over"], module.check_mode)
    module.exit_json(changed=False, interrupted=found)


if __name__ == "__main__":
    main()
