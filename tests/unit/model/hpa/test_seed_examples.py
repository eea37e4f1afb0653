"""The HPAs that stand in the proposals mean here what they mean there."""

from pathlib import Path
from typing import Any

import yaml

from tests.unit.model.hpa.objects import hpa
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import create_update, read, to_v2, validate_create

SEEDS = Path(__file__).parents[3] / "data" / "seeds"
GATES = FeatureGates.parse("AllAlpha=true")


def documents(name: Any) -> Any:
    return list(yaml.safe_load_all((SEEDS / name).read_text()))


def test_the_hpa_beside_a_job_with_the_same_labels():
    manifest = documents("hpa-shared-labels.yaml")[-1]
    assert validate_create(manifest, GATES, namespace="default") == []
    spec: Any = read(manifest).spec
    assert (spec.min_replicas, spec.max_replicas, str(spec.scale_target_ref)) == (1, 5, "Deployment/test-app")
    assert spec.metrics[0].resource.target.average_utilization == 50
    assert spec.selection_strategy is None


def test_the_owner_reference_fragment_is_read_and_comes_back_in_the_canonical_spelling():
    (fragment,) = documents("hpa-owner-reference.yaml")
    assert read(fragment).spec.selection_strategy == "OwnerReference"
    assert to_v2(fragment)["spec"]["selectionStrategy"] == "OwnerReference"
    beside = documents("hpa-shared-labels.yaml")[-1]
    beside["spec"] |= fragment["spec"]
    assert validate_create(beside, GATES, namespace="default") == []


def test_the_queue_metric_names_one_series():
    (metrics,) = documents("hpa-queue-metric.yaml")
    answer = create_update.create(hpa(metrics=metrics), GATES)
    assert answer.errors == ()
    source: Any = read(answer.stored).spec.metrics[0].object
    assert source.metric.selector.match_labels == {"queue": "some-jobs"}
    assert (source.target.type, str(source.target.value)) == ("Value", "2")
    assert str(source.described_object) == "StatefulSet/foo"
