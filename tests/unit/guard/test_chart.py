"""The Helm chart: values that Helm refuses, by the schema as everywhere and by Helm itself where it is installed."""

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

from nodetune.guard.deploy.kubernetes import manifests, pods
from nodetune.guard.deploy.request import ManifestsRequest
from nodetune.guard.node.invocation import GIVEN

CHART = Path(__file__).parents[3] / "charts/nodetune"
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DIGEST = "sha256:" + "0a" * 32
POLICY = json.dumps({"checks": [{"id": "site-own"}]})

RIGHT = {
    "nothing": {},
    "booleans": {"fixes": True, "alerts": True},
    "checks": {"enforce": ["gpu-lost"]},
    "all checks": {"enforce": ["all"]},
    "a check of another policy": {"enforce": ["site-own"], "policy": POLICY},
    "an image by its digest": {"image": f"registry.example.com:5000/a/nodetune-node@{DIGEST}"},
    "a digest": {"image": "registry.example.com/nodetune-node:1", "digest": DIGEST},
    "a registry": {"imagePullSecrets": [{"name": "registry"}]},
    "an interval": {"interval": 60},
    "labels": {"nodeSelector": {"a.b/c": "", "d": "e_f"}},
    "tolerations": {"tolerations": [{"key": "a/b", "operator": "Equal", "value": "c", "effect": "NoSchedule"}]},
    "no tolerations": {"tolerations": []},
    "a priority": {"priorityClassName": "high"},
    "annotations": {"annotations": {"a.b/c": "any text: even 'this'"}},
    "resources": {"resources": {"check": {"limits": {"memory": "1Gi", "cpu": 0.5}}}},
    "values of the chart that has it": {"global": {"a": 1}},
}
WRONG = {
    **{f"fixes: {value!r}": {"fixes": value} for value in ("no", "false", "", 0, 1, [], {})},
    **{f"alerts: {value!r}": {"alerts": value} for value in ("no", "true", 1)},
    **{
        f"enforce: {value!r}": {"enforce": value}
        for value in ("gpu-lost", ["gpu_lost"], ["gpu-lots"], ["gpu-lost "], [1])
    },
    "a check that another policy lacks": {"enforce": ["gpu-lost"], "policy": POLICY},
    "enforced as a map": {"enforce": {"gpu-lost": True}},
    **{f"policy: {value!r}": {"policy": value} for value in ({"checks": []}, ["a"], True)},
    "a policy that is none": {"policy": "no"},
    **{f"image: {value!r}": {"image": value} for value in ("a b", "a:b:c", "a@b", "A/B", ["a"], 1)},
    **{
        f"digest: {value!r}": {"digest": value}
        for value in ("1", DIGEST[7:], DIGEST[:-1], DIGEST.upper(), f"@{DIGEST}", 1)
    },
    "a digest beside another": {"image": f"a@{DIGEST}", "digest": DIGEST},
    **{f"interval: {value!r}": {"interval": value} for value in (-30, 0, 9, 300, 30.5, "30", "30s", True)},
    **{
        f"nodeSelector: {value!r}": {"nodeSelector": value}
        for value in (["a"], "a=b", {"a": True}, {"a": 1}, {"a b": "c"})
    },
    **{
        f"secrets: {value!r}": {"imagePullSecrets": value}
        for value in ("a", ["a"], [{}], [{"name": "a", "b": "c"}], {})
    },
    **{
        f"tolerations: {value!r}": {"tolerations": value}
        for value in ({}, [{"operators": "Exists"}], [{"effect": "No"}])
    },
    **{f"priority: {value!r}": {"priorityClassName": value} for value in (1, "A", "a b")},
    **{f"annotations: {value!r}": {"annotations": value} for value in ({"a": 1}, {"a": True}, ["a"], {"a b": "c"})},
    **{
        f"resources: {value!r}": {"resources": value}
        for value in (
            "small",
            {"checks": {}},
            {"check": {"limit": {}}},
            {"check": {"limits": {"memory": "1GB"}}},
            {"check": {"limits": {"gpu": "1"}}},
            {"reporter": {"limits": {"memory": -1}}},
            {"reporter": {"limits": ["memory"]}},
        )
    },
    "an unknown value": {"enforced": ["gpu-lost"]},
    "a value that is removed": {"interval": None},
}
LEFT_TO_HELM = ("a check that another policy lacks", "a policy that is none")
"""No schema reads the policy: the templates do."""


def merged(values, over):
    """Return values as Helm merges them: null removes one."""
    both = {
        name: merged(values[name], each)
        for name, each in over.items()
        if isinstance(each, dict) and isinstance(values.get(name), dict)
    }
    return {name: each for name, each in {**values, **over, **both}.items() if each is not None}


@pytest.mark.parametrize("case", RIGHT)
def test_the_schema_takes(case):
    jsonschema.validate(merged(DEFAULTS, RIGHT[case]), SCHEMA, jsonschema.Draft7Validator)


@pytest.mark.parametrize("case", [case for case in WRONG if case not in LEFT_TO_HELM])
def test_the_schema_refuses(case):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(merged(DEFAULTS, WRONG[case]), SCHEMA, jsonschema.Draft7Validator)


def test_what_the_chart_has_by_default_is_what_the_manifests_have():
    assert DEFAULTS["resources"] == pods.RESOURCES
    assert str(DEFAULTS["interval"]) == GIVEN["every"]
    pod = manifests.daemon_set(ManifestsRequest())[-1]["spec"]["template"]["spec"]
    names = ("tolerations", "priorityClassName", "nodeSelector")
    assert {name: DEFAULTS[name] for name in names} == {name: pod[name] for name in names}


def test_no_template_takes_a_text_for_true():
    for each in (CHART / "templates").iterdir():
        assert "if .Values" not in each.read_text(), each


helm = pytest.mark.skipif(not shutil.which("helm"), reason="no helm: the chart's templates")


def rendered(tmp_path, values, *more):
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    command = ["helm", "template", "nodetune", str(CHART), "-n", "nodetune", "-f", str(tmp_path / "values.yaml"), *more]
    return subprocess.run(command, capture_output=True, text=True)


def objects(tmp_path, values):
    done = rendered(tmp_path, values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


@helm
def test_helm_takes_and_refuses_the_same(tmp_path):
    for case, values in RIGHT.items():
        kinds = [each["kind"] for each in objects(tmp_path, values)]
        assert ("PrometheusRule" in kinds, "Role" in kinds) == (case == "booleans",) * 2
    assert [case for case, values in WRONG.items() if rendered(tmp_path, values).returncode == 0] == []


@helm
def test_no_text_is_true_even_without_the_schema(tmp_path):
    for word in ("fixes=no", "fixes=false", "alerts=no"):
        done = rendered(tmp_path, {}, "--skip-schema-validation", "--set-string", word)
        assert "incompatible types for comparison" in done.stderr


@helm
def test_a_check_that_the_policy_lacks_is_named_with_those_that_it_has(tmp_path):
    said = rendered(tmp_path, WRONG["a check that another policy lacks"]).stderr
    assert '"gpu-lost" is not a gating check of the policy: there are all, site-own' in said
    assert "not a policy of the guard" in rendered(tmp_path, WRONG["a policy that is none"]).stderr


@helm
def test_the_chart_with_its_default_values_makes_what_the_manifests_are(tmp_path):
    of_chart = [each for each in objects(tmp_path, {}) if "annotations" not in each["metadata"]]
    wanted = [each for each in manifests.daemon_set(ManifestsRequest()) if each["kind"] != "Namespace"]
    for each in (*of_chart, *wanted):
        spec = each.get("spec", {}).get("template", {})
        spec.get("metadata", {}).pop("annotations", None)
        spec.get("spec", {}).pop("imagePullSecrets", None)
    by_kind = [sorted(found, key=lambda each: each["kind"]) for found in (of_chart, wanted)]
    assert by_kind[0] == by_kind[1]


@helm
def test_values_of_the_pods_reach_them(tmp_path):
    asked = {
        name: each
        for case in ("a digest", "a registry", "an interval", "annotations")
        for name, each in RIGHT[case].items()
    }
    every = objects(tmp_path, asked)
    (pod,) = [each["spec"]["template"] for each in every if each["kind"] == "DaemonSet"]
    (clear,) = [each["spec"]["template"]["spec"] for each in every if each["kind"] == "Job"]
    command = pod["spec"]["containers"][0]["command"]
    assert command[command.index("--every") + 1] == "60"
    assert pod["metadata"]["annotations"] == asked["annotations"]
    assert {each["image"] for each in (*pod["spec"]["containers"], *clear["containers"])} == {
        f"{asked['image']}@{DIGEST}"
    }
    assert pod["spec"]["imagePullSecrets"] == clear["imagePullSecrets"] == asked["imagePullSecrets"]
