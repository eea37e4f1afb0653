"""The configuration for kube-state-metrics names fields that exist, and is the one that is shipped."""

import pytest
import yaml

from trimtab.install import manifests, set_values
from trimtab.install.schema import CHART
from trimtab.model.crds import all_crds

NAME = "trimtab-kube-state-metrics"
CONFIG = yaml.safe_load((CHART / "files/kube-state-metrics.yaml").read_text(encoding="utf-8"))
RESOURCES = CONFIG["spec"]["resources"]
SCHEMAS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for crd in all_crds()
}


def paths_of(resource):
    """Yield each path that the configuration reads, from the root of the object."""
    yield from resource["labelsFromPath"].values()
    for metric in resource["metrics"]:
        (each,) = [value for name, value in metric["each"].items() if name != "type"]
        start = each.get("path", [])
        yield start
        yield [*start, *each.get("valueFrom", [])]
        yield from ([*start, *path] for path in each.get("labelsFromPath", {}).values())


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: one["groupVersionKind"]["kind"])
def test_every_path_is_a_field_of_the_definition(resource):
    for path in paths_of(resource):
        schema = SCHEMAS[resource["groupVersionKind"]["kind"]]
        for step in path if path[:1] != ["metadata"] else []:
            schema = schema.get("items", schema)
            known = schema.get("properties", {})
            assert step in known or "additionalProperties" in schema, path
            schema = known.get(step) or schema["additionalProperties"]


def test_metric_names_are_unique():
    names = [f"{one['metricNamePrefix']}_{each['name']}" for one in RESOURCES for each in one["metrics"]]
    assert len(names) == len(set(names))


def test_the_installation_gives_kube_state_metrics_its_file_and_the_right_to_read_what_it_names():
    set_to = ("kubeStateMetrics.enabled=true", "kubeStateMetrics.namespace=observe")
    made = {one["kind"]: one for one in manifests(set_values(set_to)) if one["metadata"]["name"] == NAME}
    assert made["ConfigMap"]["metadata"]["namespace"] == "observe"
    assert yaml.safe_load(made["ConfigMap"]["data"]["config.yaml"]) == CONFIG
    readable = {
        (group, resource)
        for rule in made["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if rule["verbs"] == ["list", "watch"]
    }
    named = {
        (crd["spec"]["group"], crd["spec"]["names"]["plural"])
        for crd in all_crds()
        for one in RESOURCES
        if one["groupVersionKind"]["kind"] == crd["spec"]["names"]["kind"]
    }
    assert readable == named | {("apiextensions.k8s.io", "customresourcedefinitions")}
    assert made["ClusterRoleBinding"]["subjects"][0]["namespace"] == "observe"
    assert not [one for one in manifests(set_values([])) if one["metadata"]["name"] == NAME]
