#!/usr/bin/python
"""Installs given versions of packages in one transaction; in check mode it reports the steps."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host import idle
from ansible.module_utils.nodetune_host.problem import options, reported
from ansible.module_utils.nodetune_packages import manager
from ansible.module_utils.nodetune_packages.question import Question

DOCUMENTATION = """{
 "module": "nodetune_packages",
 "short_description": "Install packages together or not at all",
 "description": [
  "In check mode the site's repositories and versions count as if they were on the host already.",
  "C(steps) lists [name, version before, version after]."
 ],
 "options": {
  "manager": {"description": "The host's package manager.", "type": "str", "required": true, "choices": ["apt", "dnf"]},
  "packages": {"description": "Names.", "type": "list", "elements": "str", "required": true},
  "versions": {"description": "Name to version; the names may be more than C(packages).",
               "type": "dict", "default": {}},
  "repositories": {"description": "The site's repositories with their keys.",
                   "type": "list", "elements": "dict", "default": [], "no_log": false},
  "replaces": {"description": "Patterns of installed packages that may be removed.",
               "type": "list", "elements": "str", "default": []},
  "guard": {"description": "Conditions if packages would be replaced (C(gpu_idle), C(drained)).",
            "type": "dict", "default": {}}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    given = module.params
    repositories = given["repositories"] if module.check_mode else None
    question = Question(given["packages"], given["versions"], repositories, replaces=given["replaces"])
    with reported(module):
        of = manager(given["manager"])
        if not module.check_mode:
            of.prepare()
        with of.asked(question) as (answer, _):
            pass
        if answer.steps and not module.check_mode:
            idle.require(given["guard"])
            of.carry_out(question)
    module.exit_json(changed=bool(answer.steps), steps=answer.steps, diff=answer.diff())


if __name__ == "__main__":
    main()
