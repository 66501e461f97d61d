#!/usr/bin/python
"""Fails unless the packages of the driver family have the driver's version."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host.problem import options, reported
from ansible.module_utils.nodetune_packages import held
from ansible.module_utils.nodetune_packages.question import disagreeing

DOCUMENTATION = """{
 "module": "nodetune_require_same_version",
 "short_description": "Fail unless packages have the driver's version",
 "description": [
  "With C(versions) these are compared; else what is installed on this host.",
  "A package that is missing or has two versions disagrees too.",
  "In check mode installed packages may disagree; C(changed) then says that they would not after the run."
 ],
 "options": {
  "manager": {"description": "The host's package manager.", "type": "str", "required": true, "choices": ["apt", "dnf"]},
  "packages": {"description": "Names.", "type": "list", "elements": "str", "required": true},
  "driver": {"description": "The driver's own version.", "type": "str", "required": true},
  "versions": {"description": "Name to version.", "type": "dict"}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    given, locked = module.params, module.params["versions"]
    with reported(module):
        if locked is None:
            found = held.every_version(given["manager"], given["packages"])
        else:
            found = {name: [version] for name, version in locked.items()}
    other = disagreeing(sorted(given["packages"]), found, given["driver"])
    if other and locked is not None:
        advice = "they work only in the same version, so nothing was installed; lock again (nodetune lock)"
        module.fail_json(msg=f"driver {given['driver']} would be installed with {', '.join(other)}: {advice}")
    if other and not module.check_mode:
        module.fail_json(msg=f"driver {given['driver']} is wanted, but found {', '.join(other)}: run role driver first")
    module.exit_json(changed=bool(other))


if __name__ == "__main__":
    main()
