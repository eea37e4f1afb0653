"""Random pods on the real kube-apiserver: what it admits as they are, it admits with our sizes, in their QoS class.

The seeds are the cases: 1 to 380, ten pods each, of which 2,000 and more are admitted as they are. The lab is asked the same and has to answer the same.
"""

import asyncio

import pytest

from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.vertical.admissible import ACCEPTED_WITH_CLAIMS, QOS_OF_1_37, Found, Trial
from tests.scenarios.vertical.random_pods import namespace_of
from tests.scenarios.vertical.test_admissible_pods import on_the_lab
from tools.peers import releases
from tools.peers.cluster import RealCluster
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport

pytestmark = pytest.mark.real

SEEDS, PODS_EACH = range(1, 381), 10


async def on_the_real_server(cluster: RealCluster, seeds: range, pods: int) -> Found:
    clock = ShiftedClock()
    connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
    client = Client(clock, HttpTransport(clock, connection))
    found = Found()
    for seed in seeds:
        trial = Trial(client, f"case-{seed}", found, is_since_1_37=not releases.before("1.37"))
        await trial.run(namespace_of(seed, pods))
    await client.close()
    return found


def test_what_the_real_server_admits_as_it_is_it_admits_with_our_sizes(real_cluster: RealCluster):
    real_cluster.stop("kube-controller-manager")
    found = asyncio.run(on_the_real_server(real_cluster, SEEDS, PODS_EACH))
    assert found.broken == []
    assert found.counts["plain: admitted"] >= 2_000, found.counts
    for way in ("sized", "held back", "resize: accepted", "resize: refused"):
        assert found.counts[way] >= 100, f"too few cases are {way}: {found.counts}"
    assert (found.counts[ACCEPTED_WITH_CLAIMS] >= 100) is not releases.before("1.37"), found.counts
    assert found.counts[QOS_OF_1_37] <= 2, "of pods with empty pod-level resources, since 1.37"
    clock = VirtualClock()
    lab = clock.run(on_the_lab(clock, SEEDS, PODS_EACH))
    apart = {seed: ways for seed, ways in found.answers.items() if lab.answers[seed] != ways}
    assert len(apart) <= (0 if releases.before("1.37") else 40), apart  # the lab answers as 1.36 does
