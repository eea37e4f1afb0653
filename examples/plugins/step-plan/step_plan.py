"""Replicas by a table: from each threshold on, so many pods for so much of a metric.

parameters: {metric: requests, steps: [{above: 0, pods: 1, per: 100}, {above: 1000, pods: 3, per: 100}]}
"""

from math import ceil, inf

from trimtab.plugins import ReplicaPolicyInput, ReplicaProposal


def propose_by_steps(seen: ReplicaPolicyInput) -> ReplicaProposal:
    """Add up the pods of every step that the load has reached."""
    name = seen.parameters["metric"]
    metric = seen.metric(name)
    if metric is None or metric.value is None:
        return ReplicaProposal(replicas=None, reason=f"{name} has no value")
    load = metric.value if metric.total is None else metric.total
    steps = sorted(seen.parameters["steps"], key=lambda step: step["above"])
    ends = [*(step["above"] for step in steps[1:]), inf][: len(steps)]
    replicas, reason = 0, f"{name} is below the first step"
    for step, end in zip(steps, ends, strict=True):
        if load > step["above"]:
            part = min(load, end) - step["above"]
            replicas += ceil(part / step["per"]) * step["pods"]
            reason = f"{step['pods']} pods per {step['per']} {name} above {step['above']}"
    return ReplicaProposal(replicas=min(replicas, seen.max_replicas), reason=reason)
