"""Replicas follow the table of steps."""

import pytest
from step_plan import propose_by_steps

from trimtab.plugins import PolicyMetric, ReplicaPolicyInput
from trimtab.plugins.testing import check_replica_policy

PARAMETERS = {
    "metric": "requests",
    "steps": [{"above": 1000, "pods": 3, "per": 100}, {"above": 0, "pods": 1, "per": 100}],
}


def seen(load: float | None) -> ReplicaPolicyInput:
    metric = PolicyMetric(name="requests", type="External", value=load, total=load)
    return ReplicaPolicyInput(
        namespace="shop",
        name="web",
        replicas=1,
        min_replicas=1,
        max_replicas=50,
        metrics=(metric,),
        parameters=PARAMETERS,
    )


@pytest.mark.parametrize(
    ("load", "replicas", "reason"),
    [
        (0, 0, "requests is below the first step"),
        (1, 1, "1 pods per 100 requests above 0"),
        (1000, 10, "1 pods per 100 requests above 0"),
        (1001, 13, "3 pods per 100 requests above 1000"),
        (1250, 19, "3 pods per 100 requests above 1000"),
        (None, None, "requests has no value"),
    ],
)
def test_each_step_adds_its_pods(load: float | None, replicas: int | None, reason: str) -> None:
    proposal = propose_by_steps(seen(load))
    assert (proposal.replicas, proposal.reason) == (replicas, reason)


def test_it_keeps_the_protocol() -> None:
    check_replica_policy(propose_by_steps, PARAMETERS)
