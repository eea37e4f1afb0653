"""Records load from Prometheus, for `Trace.from_prometheus` and `trimtab trace`."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from trimtab.adapter.config import ServerAddress, connection_to
from trimtab.adapter.files import ConfigurationError
from trimtab.clock import Clock
from trimtab.cluster.http import HttpTransport
from trimtab.library.progress import OnProgress
from trimtab.library.trace import Trace, TraceError
from trimtab.metrics.prometheus import NoPrometheusError, PrometheusClient, PrometheusError
from trimtab.metrics.range_queries import Progress, Range, RangeSeries, read_history

PER_POD, ROLES = "POD/", "POD/label/"
"""What the names of columns begin with that stand for a column per pod, and for the values of a label of each pod."""

DEADLINE = 60.0
"""Seconds for the answer to one query. A week of many series takes long."""


class UnreachableError(TraceError):
    """No Prometheus answers at the address."""


def range_until(clock: Clock, since: timedelta, step: timedelta) -> Range:
    """Return the range of that length until now, in whole seconds."""
    now = clock.now().replace(microsecond=0)
    return Range(now - since, now, step.total_seconds())


async def record_load(
    clock: Clock,
    address: ServerAddress,
    queries: Mapping[str, str],
    wanted: Range,
    on_progress: OnProgress,
) -> Trace:
    """Return a trace with a column per query, or of a column `POD/...` with a column per pod.

    Raise UnreachableError if no Prometheus answers, and TraceError if a query fails or does not return a single series.
    """
    try:
        transport = HttpTransport(clock, connection_to(clock, address, Path()))
        client = PrometheusClient(clock, transport, deadline=DEADLINE)
        try:
            await client.reach()  # within seconds; a part of the history may take a minute
            return await _read(client, queries, wanted, on_progress)
        finally:
            await client.close()
    except NoPrometheusError as error:
        raise UnreachableError(f"no Prometheus answers at {address.url}: {error}") from error
    except (PrometheusError, ConfigurationError) as error:
        raise TraceError(str(error)) from error


async def _read(
    client: PrometheusClient, queries: Mapping[str, str], wanted: Range, on_progress: OnProgress
) -> Trace:
    series: dict[str, RangeSeries] = {}
    labels: dict[str, tuple[RangeSeries, str]] = {}
    for finished, (column, query) in enumerate(queries.items()):

        def show(done: Progress, column: str = column, finished: int = finished) -> None:
            on_progress(column, (finished + done.share) / len(queries))

        found = await read_history(client, query, wanted, on_progress=show)
        if not column.startswith(PER_POD):
            series[column] = single_series(column, found)
        elif column.startswith(ROLES):
            labels |= label_series(column, found)
        else:
            series |= series_by_pod(column, found)
    return trace_from_series(series, wanted, labels)


def series_by_pod(column: str, series: Sequence[RangeSeries]) -> dict[str, RangeSeries]:
    """Return the series of `POD/CONTAINER/memory` or `POD/NAME/memory` by their columns.

    The labels `pod` and `container` of a series name it.
    """
    found: dict[str, RangeSeries] = {}
    for one in series:
        pod, container = one.labels.get("pod", ""), one.labels.get("container", "")
        name = column.replace("POD", pod, 1).replace("CONTAINER", container, 1)
        if not pod or ("CONTAINER" in column and not container) or name in found:
            raise TraceError(
                f"{column}: the query must give one series per pod and container: wrap it in sum by (pod, container) (...)"
            )
        found[name] = one
    return found


def label_series(column: str, series: Sequence[RangeSeries]) -> dict[str, tuple[RangeSeries, str]]:
    """Return the series of `POD/label/KEY` with the value of the label that each stands for.

    A pod has a value while the series with it has samples, as those of `kube_pod_labels` do.
    """
    key = column.removeprefix(ROLES)
    label = "label_" + re.sub(r"[^a-zA-Z0-9_]", "_", key)
    found = {}
    for number, one in enumerate(series):
        if "pod" not in one.labels or label not in one.labels:
            raise TraceError(f"{column}: the query must give series with the labels pod and {label}")
        found[f"{one.labels['pod']}/label/{key}#{number}"] = one, one.labels[label]
    return found


def single_series(column: str, series: Sequence[RangeSeries]) -> RangeSeries:
    """Return the only series of a query.

    Several are an error, since only the query can say how to add them up.
    """
    if len(series) == 1:
        return series[0]
    if not series:
        raise TraceError(f"{column}: the query found nothing in that time")
    raise TraceError(
        f"{column}: the query gives {len(series)} series where one total is needed: wrap it in sum(...)"
    )


def trace_from_series(
    series: Mapping[str, RangeSeries],
    wanted: Range,
    labels: Mapping[str, tuple[RangeSeries, str]] | None = None,
) -> Trace:
    """Return a trace with one column per series and one row per step of the range."""
    start = wanted.start.timestamp()
    times = [start + number * wanted.step for number in range(wanted.steps)]
    values: dict[str, list[str]] = {}
    for title, (one, value) in (labels or {}).items():
        column = values.setdefault(title.rpartition("#")[0], [""] * wanted.steps)
        for row, sample in enumerate(_aligned(title, one, wanted, start)):
            if sample is not None:
                column[row] = value
    return Trace(
        times, {column: _aligned(column, one, wanted, start) for column, one in series.items()}, values
    )


def _aligned(column: str, series: RangeSeries, wanted: Range, start: float) -> list[int | None]:
    values: list[int | None] = [None] * wanted.steps
    for at, value in zip(series.at, series.values, strict=True):
        if value < 0:
            raise TraceError(f"{column}: {value:g} at {at:.0f}: load is never negative")
        row = round((at - start) / wanted.step)
        if 0 <= row < wanted.steps:
            values[row] = round(value * 1000)
    return values
