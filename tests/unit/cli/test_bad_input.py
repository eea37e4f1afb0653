"""Whatever is wrong with a manifest, the answer is findings or one line, never a traceback."""

import copy
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from trimtab.cli import answer
from trimtab.library.documents import parse_documents
from trimtab.library.yaml_nodes import DocumentError
from trimtab.model.bundle import bundle_findings
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.manifest import Manifest, read_manifest

GATES = FeatureGates.parse("AllAlpha=true")
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
OLDER = [
    {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "web",
            "annotations": {
                "autoscaling.alpha.kubernetes.io/metrics": '[{"type":"Pods","pods":{"metricName":"q","targetAverageValue":"5"}}]',
                "autoscaling.alpha.kubernetes.io/behavior": '{"ScaleUp":{"Tolerance":"50m"}}',
            },
        },
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 5, "targetCPUUtilizationPercentage": 50},
    },
    {
        "apiVersion": "autoscaling/v2beta1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": TARGET,
            "maxReplicas": 5,
            "metrics": [
                {"type": "Object", "object": {"target": TARGET, "metricName": "q", "targetValue": "5"}}
            ],
        },
    },
    {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": "web-app", "creationTimestamp": "2026-01-15T12:00:00Z"},
        "spec": {"vpaObjectName": "web", "containerName": "app"},
        "status": {
            "lastUpdateTime": "2026-01-15T12:00:00Z",
            "cpuHistogram": {"bucketWeights": {"3": 10000}, "totalWeight": 1.5, "referenceTimestamp": None},
            "totalSamplesCount": 5,
        },
    },
]
VALID = OLDER + [
    one
    for path in sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
    for one in yaml.safe_load_all(path.read_text())
    if one["apiVersion"].startswith("autoscaling")
]

deep: object = "bottom"
for _ in range(60):
    deep = [deep]

WRONG = [
    None, "", "x" * 5000, "名前 \u202e", "-1", "1e400", "9" * 40, -1, 0, 2**31, 2**63, 10**400, 1.5, -0.0, 1e300, True, False,
    [], {}, [None], [[]], {"a": None}, {"": ""}, {"名": [1]}, deep, "2026-99-99T99:99:99Z", "0001-01-01T00:00:00Z", "*",
    "\ud800", "a\0b", "null", "{", "[1", '{"ScaleUp":5}',
]  # fmt: skip


def paths(node, path=()):
    """Yield the path of every value inside an object."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from paths(child, (*path, key))


EVERYWHERE = [(index, path) for index, one in enumerate(VALID) for path in paths(one)]


def mutated(index, path, change):
    """Return one valid object with the value at `path` replaced, or deleted if `change` is an Ellipsis."""
    whole = copy.deepcopy(VALID[index])
    node = whole
    for step in path[:-1]:
        node = node[step]
    if change is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = change
    return whole


@pytest.mark.parametrize("index", range(len(VALID)))
def test_the_objects_to_be_spoilt_are_good(index):
    assert not read_manifest(VALID[index], GATES).errors


@pytest.mark.parametrize("change", [..., *WRONG], ids=lambda change: repr(change)[:20])
def test_any_wrong_value_anywhere_is_judged_without_a_traceback(change):
    for index, path in EVERYWHERE:
        manifest = read_manifest(mutated(index, path, change), GATES)
        assert all(error.field and error.message for error in manifest.errors)
        if manifest.object is not None:
            bundle_findings([manifest.object, manifest.object])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.sampled_from(EVERYWHERE), change=st.sampled_from([..., *WRONG]), as_json=st.booleans())
@example(where=(0, ("metadata", "annotations")), change="x", as_json=False)
def test_the_commands_end_with_a_documented_exit_code(where, change, as_json, tmp_path, capsys):
    file = tmp_path / "spoilt.yaml"
    index, path = where
    data = mutated(index, path, change)
    text = json.dumps(data) if as_json else yaml.safe_dump(data, allow_unicode=False)
    file.write_text(text, encoding="utf-8", errors="replace")
    for command in (
        ["validate"],
        ["validate", "-o", "json"],
        ["convert", "--to", "v1"],
        ["convert", "--to", "v2"],
    ):
        assert answer([*command, str(file)]) in (0, 1, 2)
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "defect" not in err


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200) | st.text(alphabet="{}[]:,-&*!|>'\"#?%@` \n\tab1<~.", max_size=60))
def test_any_text_is_documents_or_one_error(text):
    text = text.encode(errors="replace").decode()
    assert all(isinstance(one, Manifest) or one.startswith("f") for one in outcome(text))


def outcome(text):
    try:
        return [read_manifest(document.data, GATES) for document in parse_documents(text, "f")]
    except DocumentError as error:
        return [str(error)]


@settings(max_examples=50, deadline=None)
@given(raw=st.binary(max_size=200))
def test_any_bytes_end_with_a_documented_exit_code(raw, tmp_path_factory):
    file = tmp_path_factory.mktemp("bytes") / "f.yaml"
    file.write_bytes(raw)
    assert answer(["validate", str(file)]) in (0, 1, 2)


def test_ten_megabytes_are_read_or_refused(tmp_path, capsys):
    file = tmp_path / "big.yaml"
    item = "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {text: %s}}\n" % ("x" * 2000)
    file.write_text("apiVersion: v1\nkind: List\nitems:\n" + item * (9_000_000 // len(item)))
    assert answer(["validate", str(file), "-o", "json"]) == 0
    file.write_text("a: " + "x" * 11_000_000)
    assert answer(["validate", str(file)]) == 2
    assert "is larger than 10 MiB" in capsys.readouterr().err
