"""The recorded answers that the lab is held to are still those of the real kube-apiserver."""

import pytest

from tests.lab.recording import CONTROLLERS, record, recorded
from tests.lab.scripts import SCRIPTS
from tools.peers.cluster import RealCluster

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def quiet_cluster(real_cluster: RealCluster) -> RealCluster:
    """A cluster without the controllers that would touch what the scripts create."""
    real_cluster.stop("kube-controller-manager")
    real_cluster.start_controllers(CONTROLLERS)
    return real_cluster


@pytest.mark.parametrize("number", range(len(SCRIPTS)), ids=[script.name for script in SCRIPTS])
def test_the_recording_is_what_the_real_server_answers(real_cluster: RealCluster, number: int):
    script = SCRIPTS[number]
    assert record(real_cluster, script, number) == recorded()[script.name]
