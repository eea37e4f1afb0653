"""Records load from Prometheus, for `Trace.from_prometheus` and `trimtab trace`."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from trimtab import backtest
from trimtab.adapter.config import ServerAddress, connection_to
from trimtab.adapter.errors import ConfigurationError
from trimtab.backtest.results import OnProgress
from trimtab.backtest.trace import (
    PER_POD,
    ROLES,
    TraceError,
    label_series,
    series_by_pod,
    single_series,
    trace_from_series,
)
from trimtab.clock import Clock
from trimtab.cluster.http import HttpTransport
from trimtab.metrics.prometheus import NoPrometheusError, PrometheusClient, PrometheusError
from trimtab.metrics.range_queries import Progress, Range, RangeSeries, read_history

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
) -> backtest.Trace:
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
) -> backtest.Trace:
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
