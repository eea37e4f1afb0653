"""Manifests are read and validated as by `trimtab validate`, and changed by the paths that it prints."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import trimtab
from trimtab.cli import answer
from trimtab.library.autoscalers import _merge_patch
from trimtab_lab.patches.merge import merge

EXAMPLES = Path(__file__).parents[3] / "examples"
WEB = EXAMPLES / "simulate-web.yaml"
TARGET = "spec.metrics[0].resource.target.averageUtilization"
BAD = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 5
  maxReplicas: 2
---
kind: ConfigMap
apiVersion: v1
metadata: {name: other}
"""


@pytest.fixture
def web():
    return trimtab.read_autoscaler(WEB)


def test_a_file_or_plain_data_is_read(web):
    data = yaml.safe_load(WEB.read_text())
    assert (web.kind, web.key, web.data) == ("HorizontalPodAutoscaler", "default/web", data)
    assert trimtab.read_autoscaler(str(WEB)) == trimtab.read_autoscaler(data) == web


def test_plain_data_is_copied(web):
    data = yaml.safe_load(WEB.read_text())
    read = trimtab.read_autoscaler(data)
    data["spec"]["maxReplicas"] = 1
    assert read == web


def test_lists_are_unpacked_and_other_kinds_skipped(web):
    items = [web.data, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}]
    found = trimtab.read_autoscalers({"apiVersion": "v1", "kind": "List", "items": items})
    assert found == [web]


def test_errors_are_those_of_validate(tmp_path, capsys):
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    assert answer(["validate", str(path)]) == 1
    with pytest.raises(trimtab.ManifestError) as refusal:
        trimtab.read_autoscalers(path)
    assert f"{refusal.value}\n" == capsys.readouterr().out
    assert f"{path}:8: HorizontalPodAutoscaler shop/web: spec.maxReplicas: Invalid value: 2" in str(
        refusal.value
    )


def test_warnings_are_those_of_validate(web, tmp_path, capsys):
    path = tmp_path / "doubtful.yaml"
    path.write_text(yaml.safe_dump(web.data | {"spec": web.data["spec"] | {"maxReplica": 3}}))
    assert answer(["validate", str(path)]) == 0
    (warning,) = trimtab.read_autoscaler(path).warnings
    assert f"{warning}\n" == capsys.readouterr().out
    assert "did you mean maxReplicas?" in warning


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        pytest.param("none.yaml", "none.yaml: cannot be read: No such file", id="no file"),
        pytest.param({"kind": "HorizontalPodAutoscaler"}, "apiVersion: Required value", id="no version"),
        pytest.param(
            {"apiVersion": "v1", "kind": "List", "items": []}, "manifest: has 0 autoscalers", id="none"
        ),
        pytest.param({"apiVersion": "v1", "kind": "List", "items": 3}, "has 0 autoscalers", id="no list"),
    ],
)
def test_what_cannot_be_read_is_named(source, complaint):
    with pytest.raises(trimtab.ManifestError, match=complaint):
        trimtab.read_autoscaler(source)


def test_several_where_one_is_needed_are_named(web):
    both = {"apiVersion": "v1", "kind": "List", "items": [web.data, web.data]}
    with pytest.raises(
        trimtab.ManifestError, match="has 2 autoscalers where 1 is needed: default/web, default/web"
    ):
        trimtab.read_autoscaler(both)


def test_gates_decide_what_is_valid(web):
    to_zero = {"spec.minReplicas": 0}
    with pytest.raises(trimtab.ManifestError, match=r"spec\.minReplicas"):
        trimtab.read_autoscaler(WEB, feature_gates="HPAScaleToZero=false").with_fields(to_zero)
    with pytest.raises(trimtab.ManifestError, match="feature_gates: "):
        trimtab.read_autoscaler(WEB, feature_gates="HPAScaleToZer=false")


@pytest.mark.parametrize(
    ("fields", "patch"),
    [
        pytest.param({"spec.maxReplicas": 50}, {"spec": {"maxReplicas": 50}}, id="a field"),
        pytest.param({"spec.minReplicas": None}, {"spec": {"minReplicas": None}}, id="without a field"),
        pytest.param(
            {"spec.behavior.scaleDown.stabilizationWindowSeconds": 60},
            {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}},
            id="a field below fields that are missing",
        ),
        pytest.param(
            {'metadata.annotations["example.com/team"]': "shop"},
            {"metadata": {"annotations": {"example.com/team": "shop"}}},
            id="a key with dots",
        ),
        pytest.param({}, {}, id="no change"),
    ],
)
def test_the_patch_has_what_was_changed_and_nothing_else(web, fields, patch):
    before = yaml.safe_load(WEB.read_text())
    assert web.with_fields(fields).patch_from(web) == patch
    assert web.data == before


JSON = st.recursive(
    st.integers(0, 2) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


@given(OBJECTS, OBJECTS)
def test_an_api_server_makes_the_other_object_of_any_patch(before, after):
    assert merge(before, _merge_patch(before, after)) == after
    assert _merge_patch(after, after) == {}


def test_lists_are_patched_whole(web):
    metrics = web.with_fields({TARGET: 70}).patch_from(web)["spec"]["metrics"]
    assert [metric["resource"]["target"]["averageUtilization"] for metric in metrics] == [70]
    assert metrics[0]["type"] == "Resource"


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        pytest.param("spec.maxReplicas", 1, r"spec\.maxReplicas: Invalid value: 1", id="not valid"),
        pytest.param("spec.maxReplicas", None, r"spec\.maxReplicas: Required", id="required"),
        pytest.param(
            "spec.metrics[1].type", "Pods", r"\[1\] names no element; the list has 1", id="no element"
        ),
        pytest.param("spec.metrics.type", "Pods", r"\[type\] names no element", id="no index"),
        pytest.param("spec.maxReplicas.most", 3, "there is no field 'most' in 40", id="below a number"),
        pytest.param("spec.maxReplicas.a.b", 3, "there is no field 'a' in 40", id="far below a number"),
        pytest.param("", 3, "'' is no field", id="no path"),
    ],
)
def test_a_change_that_cannot_be_made_is_named(web, path, value, complaint):
    with pytest.raises(trimtab.ManifestError, match=complaint):
        web.with_fields({path: value})


def test_vpas_are_read_too():
    vpa = {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }
    assert repr(trimtab.read_autoscaler(vpa)) == "<VerticalPodAutoscaler default/web>"
