"""Stand-ins for the collaborators of one HPA's reconcile, and builders of their inputs."""

from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from tests.unit.decide.horizontal.builders import cpu, hpa, observe, scale
from trimtab.cluster import errors
from trimtab.model.status import Status
from trimtab.operator.horizontal.config import DecisionConfig
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.kinds import OWN_HPAS
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.queries import build_queries, query_for
from trimtab.operator.horizontal.rivals import RivalCache
from trimtab.operator.horizontal.targets import ResolvedTarget

UNUSED: Any = None
"""A collaborator that a test does not need."""

CONFIG = DecisionConfig(*(getattr(observe(), name) for name in ("settings", "gates", "rules")))


def hpa_state(name="web", namespace="shop", *metrics, resource=OWN_HPAS) -> HpaState:
    meta = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "resource_version": "1"}
    return HpaState(resource, hpa(*metrics or (cpu(50),), metadata=meta))


def target(replicas=4, **fields) -> ResolvedTarget:
    return ResolvedTarget(scale=scale(replicas), **fields)


def queries_of(state: HpaState, resolved: ResolvedTarget | None = None):
    namespace = state.hpa.metadata.namespace
    per_metric = [query_for(metric, namespace, "app=web") for metric in state.hpa.spec.metrics]
    return build_queries(state.hpa, resolved or target(), tuple(query for query in per_metric if query))


def edit_spec(state: HpaState, **fields) -> None:
    """Replace the spec, as a watch event does."""
    spec = msgspec.structs.replace(state.hpa.spec, **fields)
    state.replace_hpa(msgspec.structs.replace(state.hpa, spec=spec), "")


def api_error(kind: type[errors.ApiError], code: int) -> errors.ApiError:
    return kind("a request", Status(code=code, message="no"))


def controller_metrics() -> HpaControllerMetrics:
    return HpaControllerMetrics(CollectorRegistry())


def no_rivals() -> RivalCache:
    """Return a cache of native HPAs that never asks, as where Trimtab serves them itself."""
    unused: Any = None
    return RivalCache(unused, unused, is_asked=False)
