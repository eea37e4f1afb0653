"""VPAs, scopes and checkpoints of one kind turned into the other."""

import pytest

from trimtab.model.vpa.conversion import ScopeConflictError, to_native, to_own
from trimtab.model.vpa.types import SCOPE_ANNOTATION

TARGET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}


def vpa(version="autoscaling.k8s.io/v1", *, annotations=None, **spec):
    metadata = {"name": "db", **({"annotations": annotations} if annotations else {})}
    return {
        "apiVersion": version,
        "kind": "VerticalPodAutoscaler",
        "metadata": metadata,
        "spec": {"targetRef": TARGET, **spec},
        "status": {"conditions": []},
    }


OWN = vpa("autoscaling.trimtab.dev/v1", vpaScope={"name": "leader"})
NATIVE = vpa(annotations={SCOPE_ANNOTATION: "leader"})


def test_the_scope_moves_between_field_and_annotation():
    assert to_own(NATIVE) == OWN
    assert to_native(OWN) == NATIVE
    assert to_own(OWN) == OWN


def test_a_field_that_upstreams_definition_has_is_kept():
    assert to_own(vpa(vpaScope={"name": "leader"})) == OWN
    assert to_own(vpa(annotations={SCOPE_ANNOTATION: "leader"}, vpaScope={"name": "leader"})) == OWN


def test_two_different_scopes_are_refused():
    with pytest.raises(ScopeConflictError, match="names 'other' and annotation"):
        to_own(vpa(annotations={SCOPE_ANNOTATION: "leader"}, vpaScope={"name": "other"}))


def test_history_comes_along_and_scopes_have_one_kind():
    checkpoint = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": "db-app"},
        "spec": {"vpaObjectName": "db", "containerName": "app"},
        "status": {"totalSamplesCount": 7},
    }
    own = {**checkpoint, "apiVersion": "autoscaling.trimtab.dev/v1"}
    assert (to_own(checkpoint), to_native(own)) == (own, checkpoint)
    scope = {"apiVersion": "autoscaling.trimtab.dev/v1", "kind": "VPAScope", "spec": {}}
    assert to_native(scope) == to_own(scope) == scope
