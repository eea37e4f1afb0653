"""Runs the production `decide` on recorded load, one sync after another, in virtual time."""

from collections.abc import Iterator
from typing import Any

from trimtab.backtest.life import Life
from trimtab.backtest.load import RecordedLoad
from trimtab.backtest.model import MetricModel, Model, ModelError, model_metrics, replicas_for
from trimtab.backtest.production.horizontal import Candidate, HpaLoop, SyncStep
from trimtab.backtest.trace import Trace
from trimtab.backtest.workload import Behaviour, Workload
from trimtab.model.quantity import Quantity


def backtest(candidate: Candidate, trace: Trace, model: Model) -> Iterator[SyncStep]:
    """Yield one step per sync from the first row of the trace to the last.

    Raise ModelError if they do not fit.
    """
    metrics = model_metrics(candidate.hpa, trace, model)
    first = first_replicas(candidate, metrics, trace, model)
    workload = hpa_workload(candidate, model, first, trace.start)
    life = Life(workload, RecordedLoad(trace, workload), start=trace.start)
    loop = HpaLoop(life, candidate if first else candidate.at_zero(trace.start), metrics, model, trace.at)
    for number in range(int((trace.end - trace.start) // model.sync_period) + 1):
        life.run(number * model.sync_period)
        yield loop.last


def first_replicas(candidate: Candidate, metrics: tuple[MetricModel, ...], trace: Trace, model: Model) -> int:
    """Return the initial replicas. They are 0 only if the HPA itself can scale to zero."""
    spec = candidate.hpa.spec
    if model.replicas == 0 and not candidate.goes_to_zero:
        raise ModelError(
            f"{candidate.hpa.key}: a workload that starts at zero stays paused: start with 1 replica or more, "
            "or set minReplicas to 0 with an Object or External metric and the feature gate HPAScaleToZero"
        )
    if model.replicas is not None:
        return model.replicas
    lowest = 0 if candidate.goes_to_zero else max(spec.min_replicas or 1, 1)
    return min(max(replicas_for(metrics, trace, trace.start), lowest), spec.max_replicas)


def hpa_workload(candidate: Candidate, model: Model, replicas: int, now: float) -> Workload:
    """Return the target of an HPA. Each container that it names requests as much as the pod."""
    spec = candidate.hpa.spec
    named = {metric.container_resource.container for metric in spec.metrics if metric.container_resource}
    requests = {name: str(Quantity.from_milli(amount)) for name, amount in model.requests.items()}
    names = sorted(named) or ["main"]
    pod: dict[str, Any] = {
        "containers": [{"name": name, "resources": {"requests": requests}} for name in names]
    }
    if len(names) > 1:
        pod["resources"] = {"requests": requests}
    return Workload(
        spec.scale_target_ref.name,
        {"metadata": {"labels": {"simulated": spec.scale_target_ref.name}}, "spec": pod},
        namespace=candidate.hpa.metadata.namespace,
        replicas=replicas,
        behaviour=Behaviour(start_seconds=model.start_seconds),
        now=now,
    )
