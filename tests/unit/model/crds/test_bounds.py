"""The lengths of lists that the definition of the HPA allows."""

import pytest

from trimtab.model.crds import CRDS

(HPA,) = (crd.manifest() for crd in CRDS if crd.name == "horizontalpodautoscalers.autoscaling.trimtab.dev")
SPEC = HPA["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_a_direction_has_at_most_20_policies(direction):
    policies = SPEC["behavior"]["properties"][direction]["properties"]["policies"]
    assert policies["maxItems"] == 20
    assert policies["x-kubernetes-list-type"] == "atomic"
