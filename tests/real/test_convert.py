"""What `trimtab convert` writes is accepted by a real API server, and means there what it meant before."""

import json

import pytest

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, policy
from tools.peers.cluster import RealCluster
from trimtab.model.hpa import default
from trimtab.model.hpa.manifest import WRITERS, to_own

pytestmark = [pytest.mark.real, pytest.mark.versions]

METADATA = {"name": "converted", "namespace": "default", "resourceVersion": None}
BEHAVIORS = {
    "no behavior": None,
    "an empty behavior": {},
    "a window alone": {"scaleDown": {"stabilizationWindowSeconds": 60}},
    "a tolerance alone": {"scaleUp": {"tolerance": "0.05"}},
    "both tolerances": {"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "150m"}},
    "Disabled alone": {"scaleDown": {"selectPolicy": "Disabled"}},
    "policies": {"scaleUp": {"policies": [policy("Pods", 2, 60)]}, "scaleDown": {"selectPolicy": "Min"}},
}


@pytest.mark.parametrize("behavior", BEHAVIORS.values(), ids=BEHAVIORS.keys())
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_native_version_is_stored_as_it_was_meant(real_cluster: RealCluster, version, behavior):
    own = hpa(
        version="autoscaling.trimtab.dev/v2",
        metadata=METADATA,
        minReplicas=2,
        metrics=[QUEUE, CPU],
        SelectionStrategy="OwnerReference",
        behavior=behavior,
    )
    native = WRITERS[version](own)
    # Strict: a field that the server does not have is refused instead of pruned.
    real_cluster.kubectl("create", "--validate=strict", "-f", "-", stdin=json.dumps(native))
    stored = json.loads(real_cluster.kubectl("get", "hpa", "converted", "-o", "json"))
    real_cluster.kubectl("delete", "hpa", "converted")
    assert stored["apiVersion"] == "autoscaling/v2"
    assert default(to_own(stored))["spec"] == default(to_own(own))["spec"]
