"""Checks a metric source as the adapter calls it: on a thread of its own, with a time limit, many calls at a time."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from trimtab.plugins.errors import DeclinedError
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.metric_source import LabelRequirement, MetricRequest, MetricValue, check_series
from trimtab.plugins.testing.asker import PluginTestError, check_shape, problem_of, shortened
from trimtab.plugins.thread import MAX_CALLS, PluginThread
from trimtab.plugins.time_limit import ends_the_program

MetricSourceFunction = Callable[[MetricRequest], Coroutine[Any, Any, Iterable[MetricValue]]]

TIME_LIMIT = 3.0
"""Seconds of a call, as the adapter has them if its configuration says nothing else."""
UNKNOWN = "no_metric_has_this_name"
_OTHER_SELECTORS = (
    ("=", ("",)),
    ("=", ("x" * 63,)),
    ("!=", ("orders",)),
    ("in", ("orders", "mails")),
    ("notin", ("orders", "mails")),
    ("exists", ()),
    ("!", ()),
    ("gt", ("5",)),
    ("lt", ("5",)),
)
"""Operators and values of conditions that a client may send, whatever a source expects."""


def check_metric_source(
    function: MetricSourceFunction,
    metrics: Iterable[str] = (),
    *,
    parameters: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    namespace: str = "shop",
    seconds: float = TIME_LIMIT,
) -> None:
    """Check a metric source that answers `metrics`, or raise PluginTestError.

    Each of them must have a series for a client that selects `labels`. Where a source has no answer, as about an unknown
    metric or for another selector, it returns no series or raises DeclinedError.
    """
    check_shape(function, PluginKind.METRIC_SOURCE)
    checks = _SourceChecks(function, namespace, parameters or {}, seconds)
    with ThreadPoolExecutor(1) as pool:  # the caller may have an event loop of its own
        pool.submit(asyncio.run, checks.run(tuple(metrics), labels or {})).result()


class _SourceChecks:
    def __init__(
        self,
        function: MetricSourceFunction,
        namespace: str,
        parameters: Mapping[str, Any],
        seconds: float,
    ) -> None:
        self._function = function
        self._namespace = namespace
        self._parameters = parameters
        self._seconds = seconds
        self._thread = PluginThread("metric source under test")

    async def run(self, metrics: Sequence[str], labels: Mapping[str, str]) -> None:
        try:
            await self._check_unknown(labels)
            for metric in metrics:
                for operator in ("=", "in"):
                    await self._check_known(self._request(metric, _selecting(labels, operator)))
            for metric in (*metrics, UNKNOWN):
                for selector in _other_selectors(labels):
                    await self._series(self._request(metric, selector))
            await self._check_together(metrics, labels)
        finally:
            self._thread.close()

    async def _check_unknown(self, labels: Mapping[str, str]) -> None:
        request = self._request(UNKNOWN, _selecting(labels, "="))
        if series := await self._series(request):
            raise PluginTestError(
                f"unknown metrics: it has {shortened(series)} for {shortened(request)}; "
                "return no series, or raise DeclinedError with the reason"
            )

    async def _check_known(self, request: MetricRequest) -> None:
        series = await self._series(request)
        if series is None:
            raise PluginTestError(f"values: it declines to answer {shortened(request)}")
        wanted = request.labels.items()
        if not any(wanted <= dict(value.labels).items() for value in series):
            raise PluginTestError(
                f"values: none of {shortened(series)} has the labels that are selected, so the client gets none, "
                f"for {shortened(request)}"
            )

    async def _check_together(self, metrics: Sequence[str], labels: Mapping[str, str]) -> None:
        """Ask as many times at once as the adapter does; each answer is for its own request."""
        known = [self._request(metric, _selecting(labels, "=")) for metric in metrics]
        requests = (known or [self._request(UNKNOWN, ())]) * MAX_CALLS
        check = self._check_known if known else self._series
        try:
            async with asyncio.TaskGroup() as group:
                for request in requests[:MAX_CALLS]:
                    group.create_task(check(request))
        except ExceptionGroup as errors:
            raise PluginTestError(f"{MAX_CALLS} calls at a time: {errors.exceptions[0]}") from errors

    async def _series(self, request: MetricRequest) -> list[MetricValue] | None:
        """Return the checked answer, or None if the source declines."""

        async def answer() -> list[MetricValue]:
            return check_series(await self._function(request), datetime.now(UTC))

        try:
            async with asyncio.timeout(self._seconds):
                return await self._thread.call(answer)
        except DeclinedError:
            return None
        except TimeoutError as error:
            raise PluginTestError(
                f"time: a call took longer than {self._seconds * 1000:.0f} ms, for {shortened(request)}"
            ) from error
        except BaseException as error:
            if ends_the_program(error):
                raise
            advice = "; where it has no answer, return no series, or raise DeclinedError with the reason"
            raise PluginTestError(f"{problem_of(error)}, for {shortened(request)}{advice}") from error

    def _request(self, metric: str, selector: tuple[LabelRequirement, ...]) -> MetricRequest:
        return MetricRequest(
            namespace=self._namespace,
            metric=metric,
            selector=selector,
            parameters=deepcopy(dict(self._parameters)),
        )


def _selecting(labels: Mapping[str, str], operator: str) -> tuple[LabelRequirement, ...]:
    return tuple(
        LabelRequirement(key=key, operator=operator, values=(value,)) for key, value in labels.items()
    )


def _other_selectors(labels: Mapping[str, str]) -> Iterator[tuple[LabelRequirement, ...]]:
    """Yield selectors without the labels, with other conditions on them, and with one more label."""
    selected = _selecting(labels, "=")
    yield ()
    for operator, values in _OTHER_SELECTORS:
        yield from ((LabelRequirement(key=key, operator=operator, values=values),) for key in labels)
        yield (*selected, LabelRequirement(key="zone.example.com/name", operator=operator, values=values))
