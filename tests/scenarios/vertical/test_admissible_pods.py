"""Random pods on the lab: what it admits as they are, it admits with our sizes; `tests/real` asks the real server."""

import pytest

from tests.scenarios.vertical.admissible import Found, Trial
from tests.scenarios.vertical.random_pods import namespace_of
from tests.support.cluster import as_admin
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery
from trimtab.model.core.server_rules import (
    KUBERNETES_1_34,
    KUBERNETES_1_36,
    KUBERNETES_1_37,
    ServerRules,
    rules_of,
)
from trimtab_lab.apiserver.server import Server

NAMESPACES, PODS_EACH = 60, 5


async def on_the_lab(
    clock: VirtualClock, seeds: range, pods: int, rules: ServerRules = KUBERNETES_1_37
) -> Found:
    found = Found()
    async with Server(clock, seed=1, rules=rules) as server:
        client = Client(clock, as_admin(server))
        told = rules_of(await Discovery(client).kubernetes())
        for seed in seeds:
            await Trial(client, f"case-{seed}", found, told).run(namespace_of(seed, pods))
        await client.close()
    return found


@pytest.mark.parametrize(
    "rules", [KUBERNETES_1_34, KUBERNETES_1_36, KUBERNETES_1_37], ids=lambda rules: rules.version
)
def test_what_is_admitted_as_it_is_is_admitted_with_our_sizes(rules: ServerRules):
    clock = VirtualClock()
    found = clock.run(on_the_lab(clock, range(1, NAMESPACES + 1), PODS_EACH, rules))
    assert found.broken == []
    for way in ("plain: admitted", "plain: refused", "sized", "held back", "resize: accepted"):
        assert found.counts[way] >= NAMESPACES * PODS_EACH // 40, f"too few cases are {way}: {found.counts}"
