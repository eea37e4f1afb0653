"""Samples by container name, where the product has the rows of containers at hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.input.usage import FROM_THE_FUTURE, IntakeReport, add_rows

DISCARDED = "sample discarded (invalid or out of order)"


@dataclass(frozen=True)
class UsageBatch:
    """Samples of a resource of many containers, all lists of one length."""

    containers: Sequence[ContainerId]
    amounts: Sequence[int]
    times_ns: Sequence[int]
    capacities: Sequence[int] | None = None


def add_usage(state: ClusterState, resource: str, batch: UsageBatch, now_ns: int) -> IntakeReport:
    """Add the samples of a scrape. Samples of unknown containers are dropped."""
    rows = [state.rows.get(container) for container in batch.containers]
    known = np.array([row is not None for row in rows], dtype=np.bool_)
    usage = UsageRows(
        np.array([row for row in rows if row is not None], dtype=np.int64),
        np.array(batch.amounts, dtype=np.int64)[known],
        np.array(batch.times_ns, dtype=np.int64)[known],
    )
    capacities = None if batch.capacities is None else np.array(batch.capacities, dtype=np.int64)[known]
    return add_rows(state, resource, usage, capacities, now_ns)


def add_sample(
    state: ClusterState, container: ContainerId, resource: str, amount: int, time_ns: int, now_ns: int
) -> str | None:
    """Add a sample. Return an error if it is rejected."""
    tracked = state.find_container(container)
    if isinstance(tracked, str):
        return tracked
    report = add_usage(state, resource, UsageBatch([container], [amount], [time_ns]), now_ns)
    if report.from_the_future:
        return FROM_THE_FUTURE
    return None if report.accepted else DISCARDED
