"""The real kube-apiserver with its gates on, then off, then on: what it refuses, drops and keeps (2.6, 3.6).

The lab shows the same in `tests/scenarios/horizontal/test_gates.py`; a difference would be a bug in the lab.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.objects import external_metric, tolerances
from tools.peers import releases
from tools.peers.cluster import PeerError, RealCluster
from trimtab.cluster.resource import Json

pytestmark = [pytest.mark.real, pytest.mark.versions]
ZERO_OFF = "HPAScaleToZero=false"
BOTH_OFF = f"{ZERO_OFF},HPAConfigurableTolerance=false"
HPA = "hpa/web"
T = TypeVar("T")


@pytest.fixture(scope="module")
def server(real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A server of our own: others should not find its gates off."""
    with RealCluster(Path(tmp_path_factory.mktemp("gates"))) as cluster:
        yield cluster


def hpa(name: str = "web", **spec: object) -> str:
    body: Json = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 10,
            "metrics": [external_metric("queue", average="100")],
            **spec,
        },
    }
    return json.dumps(body)


def edit(server: RealCluster, name: str, **spec: object) -> None:
    server.kubectl("patch", name, "--type=merge", "-p", json.dumps({"spec": spec}))


def spec_of(server: RealCluster, name: str) -> Json:
    found: Json = json.loads(server.kubectl("get", name, "-o", "json"))["spec"]
    return found


def tolerances_of(server: RealCluster, name: str) -> tuple[str | None, str | None]:
    behavior = spec_of(server, name)["behavior"]
    return behavior["scaleUp"].get("tolerance"), behavior["scaleDown"].get("tolerance")


def where_gated(gated: T, locked: T) -> T:
    """Return one of two answers: tolerances have a gate that can be off until 1.36, and none from 1.37 on."""
    return gated if releases.before("1.37") else locked


def test_tol_g2_z_i4_up_and_down_what_a_server_refuses_drops_and_keeps(server: RealCluster):
    server.kubectl("apply", "-f", "-", stdin=hpa(minReplicas=0, behavior=tolerances(up="0.05")))
    server.kubectl("apply", "-f", "-", stdin=hpa("plain"))
    server.restart_apiserver(gates=where_gated(BOTH_OFF, ZERO_OFF))
    stored_values_stay_and_new_ones_do_not_come(server)
    server.restart_apiserver()
    assert tolerances_of(server, HPA) == ("50m", "200m"), "what was stored is active again"
    edit(server, "hpa/plain", minReplicas=0, behavior=tolerances(up="0.05"))
    assert spec_of(server, "hpa/plain")["minReplicas"] == 0
    assert tolerances_of(server, "hpa/plain") == ("50m", None)


def stored_values_stay_and_new_ones_do_not_come(server: RealCluster) -> None:
    assert tolerances_of(server, HPA) == ("50m", None)
    edit(server, HPA, behavior=tolerances(up="0.05", down="0.2"))
    assert tolerances_of(server, HPA) == ("50m", "200m"), "in use: another one may be added"
    edit(server, "hpa/plain", behavior=tolerances(up="0.05"))
    assert tolerances_of(server, "hpa/plain") == where_gated((None, None), ("50m", None)), (
        "not in use: dropped"
    )
    edit(server, HPA, maxReplicas=7)
    assert spec_of(server, HPA)["minReplicas"] == 0, "a stored zero stays editable"
    with pytest.raises(PeerError, match="must be greater than or equal to 1"):
        edit(server, "hpa/plain", minReplicas=0)
    with pytest.raises(PeerError, match="must be greater than or equal to 1"):
        server.kubectl("apply", "-f", "-", stdin=hpa("created", minReplicas=0))
    server.kubectl("apply", "-f", "-", stdin=hpa("once", minReplicas=1, behavior=tolerances("0.1", "0.1")))
    created = tolerances_of(server, "hpa/once")
    assert created == where_gated((None, None), ("100m", "100m")), "created while off: both dropped"
