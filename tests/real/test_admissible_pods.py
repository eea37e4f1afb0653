"""Random pods on the real kube-apiserver: what it admits as they are, it admits with our sizes, in their QoS class.

The seeds are the cases: 1 to 380, ten pods each, of which 2,000 and more are admitted as they are. The lab is asked the same and has to answer the same.
"""

import asyncio

import pytest

from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.vertical.admissible import Found, Trial
from tests.scenarios.vertical.random_pods import namespace_of
from tests.scenarios.vertical.test_admissible_pods import on_the_lab
from tools.peers import releases
from tools.peers.cluster import RealCluster
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.http import HttpTransport
from trimtab.model.core.server_rules import rules_of

pytestmark = [pytest.mark.real, pytest.mark.versions]

SEEDS, PODS_EACH = range(1, 381), 10


async def on_the_real_server(cluster: RealCluster, seeds: range, pods: int) -> Found:
    clock = ShiftedClock()
    connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
    client = Client(clock, HttpTransport(clock, connection))
    found = Found()
    rules = rules_of(await Discovery(client).kubernetes())
    for seed in seeds:
        await Trial(client, f"case-{seed}", found, rules).run(namespace_of(seed, pods))
    await client.close()
    return found


def test_what_the_real_server_admits_as_it_is_it_admits_with_our_sizes(real_cluster: RealCluster):
    real_cluster.stop("kube-controller-manager")
    found = asyncio.run(on_the_real_server(real_cluster, SEEDS, PODS_EACH))
    assert found.broken == []
    assert found.counts["plain: admitted"] >= 2_000, found.counts
    for way in ("sized", "held back", "resize: accepted"):
        assert found.counts[way] >= 100, f"too few cases are {way}: {found.counts}"
    # Before 1.37 most are refused for their claims; since then only for their QoS class.
    assert found.counts["resize: refused"] >= (100 if releases.before("1.37") else 20), found.counts
    assert (found.counts["resize: accepted with claims"] >= 100) is not releases.before("1.37"), found.counts
    clock = VirtualClock()
    lab = clock.run(on_the_lab(clock, SEEDS, PODS_EACH, rules_of(releases.chosen())))
    apart = {
        seed: (ways, lab.answers[seed]) for seed, ways in found.answers.items() if lab.answers[seed] != ways
    }
    assert apart == {}
