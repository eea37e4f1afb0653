"""Autoscalers with a past, made by the real `decide`, for the dashboard to show."""

import math
from datetime import UTC, datetime

import msgspec

from tests.unit.decide.horizontal import builders as given
from trimtab.decide.horizontal import (
    Owner,
    PodSamples,
    Record,
    Sample,
    Series,
    after_scale,
    decide,
    owner_key,
)
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus
from trimtab.operator.horizontal.hpa_state import HpaState, RecordHistory
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS

SYNC = 15.0
UGLY = '<img src=x onerror="window.hacked=1">'


def autoscaler(name="web", namespace="shop", *, hpa=None, native=False, records=20):
    """Make an autoscaler that nothing is decided about yet."""
    made = hpa or given.hpa()
    meta = {"name": name, "namespace": namespace, "uid": f"uid-of-{namespace}-{name}-{native}"}
    target = msgspec.structs.replace(made.spec.scale_target_ref, name=name)
    made = msgspec.structs.replace(
        made,
        metadata=msgspec.structs.replace(made.metadata, **meta),
        spec=msgspec.structs.replace(made.spec, scale_target_ref=target),
    )
    return HpaState(NATIVE_HPAS if native else OWN_HPAS, made, records=RecordHistory(records))


def decided(one, replicas, *readings, at=given.T, memory=None, **fields):
    """Let one decision be made about an autoscaler; return the replicas that come of it."""
    seen = given.observe(one.hpa, replicas, *readings, **({"memory": memory or one.memory.own} | fields))
    decision = after_scale(seen, decide(seen, datetime.fromtimestamp(at, UTC)), None)
    one.records.append(Record(observation=seen, decision=decision))
    one.memory.own = decision.memory
    one.hpa = msgspec.structs.replace(one.hpa, status=decision.status)
    return decision.desired


def steady(name="web", namespace="shop", **how):
    """Make an autoscaler at its target."""
    one = autoscaler(name, namespace, **how)
    decided(one, 3, given.usage_of(given.pods(3), 50))
    return one


def wave(source=None, *, one=None, steps=120, until=given.T):
    """Let a workload with two kinds of metrics live through half an hour of rising and falling load."""
    one = one or autoscaler(hpa=busy_hpa(), records=20)
    replicas = 4
    for step in range(steps):
        at = until - (steps - 1 - step) * SYNC
        load = 480 + 330 * math.sin(step / 17) + 25 * math.sin(step * 2.1)
        owned = tuple(
            msgspec.structs.replace(
                pod, owners=(given.REPLICA_SET,), started=at - 3600, ready_since=at - 3600
            )
            for pod in given.pods(replicas)
        )
        job = msgspec.structs.replace(given.pod("scrape-x2k9p", owners=(given.JOB,)), started=at - 600)
        usage = {pod.name: round(load / replicas * _spread(pod.name)) for pod in owned}
        cpu = PodSamples(
            samples={name: Sample(value, at - 10, 15.0) for name, value in usage.items()}
            | {job.name: Sample(990, at - 10, 15.0)},
            timestamp=at - 10,
        )
        queue = Series(samples=(Sample(round(load * 70), at - 10, 0.0),))
        replicas = decided(
            one, replicas, cpu, queue, at=at, pods=(*owned, job), owners=_owners(), memory=one.memory.own
        )
        if source is not None:
            source.refresh()
    return one


def _spread(name):
    return 0.85 + (sum(name.encode()) % 31) / 100


def _owners():
    return {
        owner_key(given.REPLICA_SET): Owner(
            kind="ReplicaSet", name="web-7f9", uid="uid-of-web-7f9", owners=(given.DEPLOYMENT,)
        ),
        owner_key(given.JOB): Owner(kind="Job", name="scrape", uid="uid-of-scrape", owners=()),
    }


def busy_hpa():
    return given.hpa(
        given.cpu(60),
        given.external(given.average("12"), "orders"),
        low=2,
        high=12,
        selection_strategy="OwnerReference",
        behavior=given.behavior(
            given.rules(("Pods", 2, 30), ("Percent", 100, 60), window=0, select="Max", tolerance="0.05"),
            given.rules(("Percent", 50, 60), window=180),
        ),
        status=HorizontalPodAutoscalerStatus(observed_generation=1),
    )


def crowd(number):
    """Make many autoscalers in all states, as a big cluster has them."""
    made = []
    for index in range(number):
        name, namespace = f"service-{index:04d}", f"team-{index % 23:02d}"
        one = autoscaler(name, namespace, native=index % 11 == 0)
        kind = index % 10
        if kind == 9:
            decided(one, 3, given.unreadable("unable to fetch metrics from resource metrics API: 503"))
        elif kind == 8:
            decided(one, 3, given.usage_of(given.pods(3), 90))
        elif kind == 7:
            decided(one, 4, given.usage_of(given.pods(4), 20))
        elif kind == 6:
            decided(one, 0)
        elif kind == 5 and index % 20 == 5:
            pass
        else:
            decided(one, 1 + index % 9, given.usage_of(given.pods(1 + index % 9), 47 + index % 7))
        made.append(one)
    return made
