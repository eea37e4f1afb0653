"""`SelectionStrategy`, as KEP-5625 spells it, is `selectionStrategy` wherever an object is read."""

import json

import pytest

from tests.unit.model.hpa.objects import hpa
from trimtab.cluster.codec.objects import decode_answer, decode_page, event_decoder
from trimtab.decide.horizontal import Observation
from trimtab.model.crds import all_crds
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import read
from trimtab.model.hpa.manifest import (
    WRITERS,
    to_native_v1,
    to_native_v2,
    to_own,
)
from trimtab.model.hpa.selection_strategy import ANNOTATION, conflict_of
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.model.manifest import read_manifest

OWN = "autoscaling.trimtab.dev/v2"
GATES = FeatureGates.parse("AllAlpha=true")


def decoded_from_a_list(data):
    (item,) = decode_page("listing", json.dumps({"items": [data]}).encode(), HorizontalPodAutoscaler).items
    return item


def decoded_from_a_watch(data):
    line = json.dumps({"type": "ADDED", "object": data}).encode()
    return event_decoder(HorizontalPodAutoscaler)(line).object


READERS = {
    "a list": decoded_from_a_list,
    "a watch": decoded_from_a_watch,
    "an answer": lambda data: decode_answer("reading", json.dumps(data).encode(), HorizontalPodAutoscaler),
    "a record": lambda data: wire.convert({"hpa": data}, Observation).hpa,
    "a manifest": read,
    "validate": lambda data: read_manifest(data, GATES).object,
    "convert --to v1": lambda data: read(to_native_v1(data)),
    "convert --to v2": lambda data: read(to_native_v2(data)),
    "convert --to trimtab": lambda data: read(to_own(data)),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("spelling", ["selectionStrategy", "SelectionStrategy"])
def test_either_spelling_is_read_as_one_field(reader, spelling):
    found = reader(hpa(version=OWN, **{spelling: "OwnerReference"}))
    assert found.spec == reader(hpa(version=OWN, selectionStrategy="OwnerReference")).spec
    assert found.spec.selection_strategy == "OwnerReference"
    assert "SelectionStrategy" not in json.loads(wire.encode(found.spec))


def test_two_values_are_not_read():
    with pytest.raises(wire.WireError, match="in two spellings with two values"):
        wire.convert(
            hpa(version=OWN, SelectionStrategy="OwnerReference", selectionStrategy="LabelSelector"),
            HorizontalPodAutoscaler,
        )


def test_the_definition_takes_both_spellings():
    (crd,) = [crd for crd in all_crds() if crd["spec"]["names"]["plural"] == "horizontalpodautoscalers"]
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    first, second = (spec["properties"][name] for name in ("selectionStrategy", "SelectionStrategy"))
    assert first["x-kubernetes-validations"] == second["x-kubernetes-validations"]


def test_an_annotation_of_our_own_kind_counts_and_is_kept_by_every_conversion():
    own = hpa(version=OWN)
    own["metadata"]["annotations"] = {ANNOTATION: "OwnerReference"}
    assert read(own).spec.selection_strategy == "OwnerReference"
    for write in WRITERS.values():
        assert read(write(own)).spec.selection_strategy == "OwnerReference"
    own["spec"]["selectionStrategy"] = "LabelSelector"
    assert "remove all but one" in conflict_of(own)
