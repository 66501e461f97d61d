#!/usr/bin/python
"""Returns the versions that this host would get from the site's repositories. Changes nothing."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.nodetune_host.problem import options, reported
from ansible.module_utils.nodetune_packages import manager
from ansible.module_utils.nodetune_packages.question import Question, resolved

DOCUMENTATION = """{
 "module": "nodetune_versions",
 "short_description": "Resolve the versions that would be installed",
 "description": [
  "Resolves the transaction on this host, with the site's repositories in a separate folder.",
  "C(versions) has all packages from these repositories with their dependencies; C(driver) the driver's version."
 ],
 "options": {
  "manager": {"description": "The host's package manager.", "type": "str", "required": true, "choices": ["apt", "dnf"]},
  "repositories": {"description": "The site's repositories with their keys.",
                   "type": "list", "elements": "dict", "required": true, "no_log": false},
  "packages": {"description": "Names.", "type": "list", "elements": "str", "required": true},
  "together": {"description": "Those of C(packages) that must have the same upstream version.",
               "type": "list", "elements": "str", "default": []},
  "branch": {"description": "Branch of the driver (580) or its full version (580.159.04).",
             "type": "str", "default": ""},
  "family": {"description": "Patterns of the names to which C(branch) applies.",
             "type": "list", "elements": "str", "default": []},
  "replaces": {"description": "Patterns of installed packages that may be removed.",
               "type": "list", "elements": "str", "default": []}
 }
}"""


def main():
    module = AnsibleModule(options(DOCUMENTATION), supports_check_mode=True)
    given = module.params
    question = Question(
        given["packages"],
        repositories=given["repositories"],
        branch=given["branch"],
        family=given["family"],
        together=given["together"],
        replaces=given["replaces"],
    )
    with reported(module):
        versions, driver = resolved(manager(given["manager"]), question)
    module.exit_json(changed=False, versions=versions, driver=driver)


if __name__ == "__main__":
    main()
