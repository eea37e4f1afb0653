"""Annotations that look like ours and have no effect."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import condition, cpu, hpa, observe, run, samples
from trimtab.decide.horizontal import Record, explain
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.annotations import FIELDS_OF_OWN_KIND, SETTABLE, misspelt_annotations
from trimtab.model.manifest import read_manifest


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("autoscaling.trimtab.dev/selection-stratgy", "autoscaling.trimtab.dev/selection-strategy"),
        ("autoscaling.trimtab.dev/replica-policy", "autoscaling.trimtab.dev/replica-policies"),
        ("autoscaling.trimtab.dev/Mode", "autoscaling.trimtab.dev/mode"),
        ("trimtab.dev/selection-strategy", "autoscaling.trimtab.dev/selection-strategy"),
        ("autoscaling.trimtab.io/on-loss", "autoscaling.trimtab.dev/on-loss"),
    ],
)
def test_a_misspelt_annotation_is_named_with_the_one_that_is_meant(name, meant):
    """It was ignored without a word, so that an HPA counted all pods or scaled in a dry run."""
    words = f"annotation {name} is not known and has no effect: did you mean {meant}?"
    data = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {name: "x"}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 3,
        },
    }
    assert words in [warning.message for warning in read_manifest(data, FeatureGates()).warnings]
    autoscaler = hpa(cpu(50))
    autoscaler.metadata.annotations[name] = "x"
    seen = observe(autoscaler, 1, samples({"web-1": 50}))
    decision = run(seen)
    found = condition(decision, "FieldsIgnored")
    assert (found.status, found.reason, found.message) == ("True", "MisspeltAnnotation", words)
    assert ("MisspeltAnnotation", words) in [(event.reason, event.message) for event in decision.events]
    assert f"ignored: {words}" in str(explain(Record(observation=seen, decision=decision)))


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"cpu": 60}', '[{"name": "example.com/StepPlan"}]'])
@pytest.mark.parametrize("name", FIELDS_OF_OWN_KIND)
def test_an_annotation_of_native_hpas_on_our_own_kind_is_named_with_the_field_that_counts(name, text):
    """Policies in the annotation were ignored without a word, whatever they said."""
    words = (
        f"annotation {name} counts on native HPAs only and has no effect here: "
        f"set {FIELDS_OF_OWN_KIND[name]} instead"
    )
    data = {
        "apiVersion": "autoscaling.trimtab.dev/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {name: text}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 3,
        },
    }
    assert [one.message for one in read_manifest(data, FeatureGates()).warnings] == [words]
    autoscaler = msgspec.structs.replace(hpa(cpu(50)), api_version="autoscaling.trimtab.dev/v2")
    autoscaler.metadata.annotations[name] = text
    seen = observe(autoscaler, 1, samples({"web-1": 50}))
    decision = run(seen)
    found = condition(decision, "FieldsIgnored")
    assert (found.status, found.reason, found.message) == ("True", "MisplacedAnnotation", words)
    assert [(event.reason, event.message) for event in decision.events] == [("MisplacedAnnotation", words)]
    assert f"ignored: {words}" in str(explain(Record(observation=seen, decision=decision)))


@pytest.mark.parametrize("name", FIELDS_OF_OWN_KIND)
def test_on_native_hpas_they_are_in_place(name):
    autoscaler = msgspec.structs.replace(hpa(cpu(50)), api_version="autoscaling/v2")
    autoscaler.metadata.annotations[name] = "{}" if "policies" not in name else "[]"
    assert condition(run(observe(autoscaler, 1, samples({"web-1": 50}))), "FieldsIgnored") is None


@pytest.mark.parametrize(
    "name",
    [
        *SETTABLE,
        "autoscaling.trimtab.dev/memory",
        "example.com/mode",
        "kubectl.kubernetes.io/last-applied",
        "mode",
    ],
)
def test_other_annotations_are_left_alone(name):
    assert misspelt_annotations({name: "x"}) == {}


def test_without_a_near_name_all_known_ones_are_listed():
    (problem,) = misspelt_annotations({"autoscaling.trimtab.dev/colour": "red"}).values()
    assert problem.endswith(f"known are {', '.join(SETTABLE)}")
