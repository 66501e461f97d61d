"""The guard's manifests for Kubernetes, held to the schemas of Kubernetes without any field that it does not know."""

import json
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from nodetune.foundation.request import RequestError
from nodetune.guard.deploy.kubernetes import access, manifests, rules
from nodetune.guard.deploy.request import ManifestsRequest
from nodetune.guard.node import policy
from tests.support.commandline import nodetune

DEVICES = ("gpu-node-1/gpu-3",)


def made(kind="daemonset", **settings):
    return list(yaml.safe_load_all(manifests.text(ManifestsRequest(kind=kind, **settings))))


def one(kind, objects):
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


@pytest.mark.parametrize("version", ["1.33", "1.37"])
@pytest.mark.parametrize("kind", ["daemonset", "npd", "clear", "fixes", "verify", "dra"])
def test_the_schemas_of_kubernetes_accept_them(kind, version):
    newest = kind == "dra"
    for each in made(kind, kubernetes="1.37", device=DEVICES):
        kubernetes_validate.validate(each, "1.37" if newest else version, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_refused():
    daemon_set = one("DaemonSet", made())
    daemon_set["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(daemon_set, "1.37", strict=True)


def test_no_check_makes_a_problem_unless_it_is_named():
    assert _enforced(made()) == ""
    assert _enforced(made(enforce=("gpu-lost", "gpu-missing"))) == "gpu-lost,gpu-missing"
    with pytest.raises(RequestError, match="'gpu-lots' is not a gating check: there are gpu-lost, "):
        made(enforce=("gpu-lots",))


def _enforced(objects):
    command = _container("reporter", objects)["command"]
    return command[command.index("--enforce") + 1]


def _container(name, objects):
    pod = one("DaemonSet", objects)["spec"]["template"]["spec"]
    (found,) = [each for each in pod["containers"] if each["name"] == name]
    return found


def test_who_has_privileges_has_no_token_and_the_other_way_round():
    objects = made()
    pod = one("DaemonSet", objects)["spec"]["template"]["spec"]
    check, reporter = (_container(name, objects) for name in ("check", "reporter"))
    assert pod["automountServiceAccountToken"] is False
    assert check["securityContext"]["privileged"]
    assert "token" not in [each["name"] for each in check["volumeMounts"]]
    assert reporter["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert reporter["securityContext"]["runAsUser"] == 65532
    assert [each["name"] for each in reporter["volumeMounts"]] == ["result", "state", "token"]


def test_it_may_patch_the_status_of_nodes_make_events_and_nothing_else():
    rules = [("nodes/status", "patch"), ("events", "create")]
    rights = [{"apiGroups": [""], "resources": [what], "verbs": [verb]} for what, verb in rules]
    assert one("ClusterRole", made())["rules"] == rights
    objects = [each for each in made() if each["kind"].startswith("ValidatingAdmissionPolicy")]
    assert [each["spec"].get("failurePolicy") for each in objects] == ["Fail", None] * 2
    assert [each["spec"].get("validationActions") for each in objects] == [None, ["Deny"]] * 2
    assert set(access.STATUS_FIELDS) == _fields_of_a_node("status") - {"conditions"}


def test_only_the_label_of_the_gpu_operator_promises_a_gpu():
    def promised(**settings):
        command = _container("check", made(**settings))["command"]
        return command[command.index("--gpus") + 1]

    assert promised() == "1"
    assert promised(node_labels=("pool=gpu",)) == "0"


def test_both_containers_have_probes_of_their_own_state():
    for name, folder in (("check", "/result"), ("reporter", "/state")):
        container = _container(name, made())
        for probe, word in (("livenessProbe", "alive"), ("readinessProbe", "ready")):
            assert container[probe]["exec"]["command"][-3:] == [word, "--result", folder]


def test_who_may_apply_fixes_may_change_of_a_node_the_cordon_alone():
    spec = one("ValidatingAdmissionPolicy", made("fixes"))["spec"]
    assert spec["failurePolicy"] == "Fail"
    assert "system:serviceaccount:nodetune:nodetune-fix" in spec["matchConditions"][0]["expression"]
    assert spec["matchConstraints"]["resourceRules"][0]["resources"] == ["nodes", "nodes/status"]
    assert one("ValidatingAdmissionPolicyBinding", made("fixes"))["spec"]["policyName"] == "nodetune-fix"
    assert set(access.SPEC_FIELDS) == _fields_of_a_node("spec") - {"unschedulable"}


def test_the_guard_keeps_nothing_on_the_node():
    volumes = one("DaemonSet", made())["spec"]["template"]["spec"]["volumes"]
    (host,) = [each for each in volumes if "hostPath" in each]
    (mounted,) = [each for each in _container("check", made())["volumeMounts"] if each["name"] == host["name"]]
    assert mounted["readOnly"]


def _fields_of_a_node(part):
    """Return the fields of a part of a node in these schemas: one that is forgotten could be changed."""
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    schemas = [folder / f"v{version}.0-local-strict" / f"node{part}-v1.json" for version in ("1.33", "1.37")]
    return {name for each in schemas for name in json.loads(each.read_text())["properties"]}


def test_the_policy_in_the_config_map_is_one_that_the_node_reads():
    text = one("ConfigMap", made())["data"]["guard.json"]
    assert policy.Policy(policy.parsed(text), "").mode == "observe"
    assert manifests.text(ManifestsRequest()) == manifests.text(ManifestsRequest())


def test_a_node_is_measured_once_all_its_gpus_are_free_and_without_privileges():
    pod = one("Job", made("verify", gpus=4))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "4"}}
    assert container["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]


def test_rules_of_the_readiness_controller_begin_as_dry_runs():
    for each in made("nrc"):
        assert each["spec"]["dryRun"] is True
        assert each["spec"]["taint"]["key"].startswith("readiness.k8s.io/")
        with_default = "defaultStatus" in each["spec"]["conditions"][0]
        assert with_default == (each["spec"]["enforcementMode"] == "continuous")  # a bootstrap rule may have none


def test_a_device_taint_has_no_effect_at_first_and_needs_kubernetes_1_37():
    (rule,) = made("dra", kubernetes="v1.37.2", device=DEVICES)
    assert rule["spec"]["taint"]["effect"] == "None"
    assert rule["spec"]["deviceSelector"] == {"driver": "gpu.nvidia.com", "pool": "gpu-node-1", "device": "gpu-3"}
    with pytest.raises(RequestError, match="needs Kubernetes 1.37, not 1.36"):
        made("dra", kubernetes="1.36", device=DEVICES)
    with pytest.raises(RequestError, match="needs --device"):
        made("dra", kubernetes="1.37")
    with pytest.raises(RequestError, match="needs Kubernetes 1.32, not 1.31"):
        made(kubernetes="1.31")


def test_the_plugin_of_node_problem_detector_is_bounded():
    plugin = json.loads(one("ConfigMap", made("npd"))["data"]["nodetune-guard.json"])
    assert plugin["pluginConfig"]["max_output_length"] == rules.MAX_LINE_LENGTH
    assert plugin["conditions"][0]["type"] == plugin["rules"][0]["condition"] == "NodetuneGPUProblem"


WRONG = {
    "--kubernetes is '2'": {"kubernetes": "2"},
    "--device is 'gpu-3'": {"device": ("gpu-3",)},
    "--node-label is 'gpu'": {"node_labels": ("gpu",)},
    "--image is 'a b'": {"image": "a b"},
    "--image is 'a@sha256:1'": {"image": "a@sha256:1"},
}


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_value_is_named(said):
    with pytest.raises(RequestError, match=said):
        ManifestsRequest(**WRONG[said])


def test_the_command_prints_what_kubectl_takes():
    printed = nodetune("guard", "manifests", "--kind", "all", "--site", "none")
    kinds = [each["kind"] for each in yaml.safe_load_all(printed.stdout)]
    assert kinds[0] == "Namespace"
    assert kinds[-3:] == ["ConfigMap", "NodeReadinessRule", "NodeReadinessRule"]
    assert "Job" not in kinds


def _series(status, *nodes):
    labels = 'condition="NodetuneGPUProblem",status="true",node='
    return [{"series": f'kube_node_status_condition{{{labels}"{each}"}}', "values": f"{status}x30"} for each in nodes]


def _pods(ready):
    of = '{namespace="nodetune",daemonset="nodetune-node"}'
    counts = {"desired_number_scheduled": 2, "number_ready": ready}
    return [{"series": f"kube_daemonset_status_{name}{of}", "values": f"{n}x30"} for name, n in counts.items()]


def _alerts(*firing):
    """Return what to expect after 20 minutes: alert, and the labels of each that fires."""
    every = {name: [] for name in ["NodetuneGPUProblem", "NodetuneGPUProblemOnManyNodes", "NodetuneGuardNotReady"]}
    return [
        {"eval_time": "20m", "alertname": name, "exp_alerts": [{"exp_labels": each} for each in labels]}
        for name, labels in (every | dict(firing)).items()
    ]


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed: apt install prometheus")
def test_alerts_fire_for_a_bad_node_many_nodes_and_a_missing_guard(tmp_path):
    (rule,) = made("alerts")
    assert rule["kind"] == "PrometheusRule"
    bare = [[{**each, "annotations": {}} for each in group["rules"]] for group in rule["spec"]["groups"]]
    groups = [{"name": str(number), "rules": rules} for number, rules in enumerate(bare)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}))
    bad = [("NodetuneGPUProblem", [{"severity": "critical", "node": name} for name in "abcd"])]
    of = {"severity": "warning", "namespace": "nodetune", "daemonset": "nodetune-node"}
    tests = [
        {"input_series": [*_series(0, *"abcd"), *_pods(2)], "alert_rule_test": _alerts()},
        {
            "input_series": [*_series(1, "a"), *_series(0, *"bcde")],
            "alert_rule_test": _alerts((bad[0][0], bad[0][1][:1])),
        },
        {
            "input_series": _series(1, *"abcd"),
            "alert_rule_test": _alerts(*bad, ("NodetuneGPUProblemOnManyNodes", [{"severity": "critical"}])),
        },
        {"input_series": _pods(1), "alert_rule_test": _alerts(("NodetuneGuardNotReady", [of]))},
    ]
    tests = [{"interval": "1m", **each} for each in tests]
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", tmp_path / "tests.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
