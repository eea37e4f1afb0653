"""Reads usage history from Prometheus in the background, namespace by namespace.

VPAs whose history is being read have the condition FetchingHistory, and all other VPAs go on. If the history of a
namespace cannot be read, its checkpoints are loaded instead, with an event.
"""

import asyncio
import logging
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from trimtab.clock import Clock
from trimtab.cluster.config.connection import (
    Connection,
    Credential,
    Credentials,
    StaticCredentials,
    TlsSettings,
    check_address,
)
from trimtab.cluster.config.credentials import TokenFileCredentials
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Request, Response
from trimtab.metrics.prometheus import PrometheusClient, PrometheusError, QueryRefusedError
from trimtab.metrics.usage_history import SeriesNames, SlowHistoryError, Span, UsageHistoryReader
from trimtab.model.times import parse_long_duration
from trimtab.model.usage_history import UsageHistory
from trimtab.operator.settings.declare import reject_bad_values
from trimtab.operator.settings.vertical import CHECKPOINT, HistorySettings
from trimtab.operator.vertical.metrics import RecommenderMetrics

log = logging.getLogger(__name__)
MAX_PARALLEL = 4
"""Namespaces read at the same time, so that Prometheus can serve other clients."""
ATTEMPTS = 3
RETRY_SECONDS = 10.0
"""Between attempts: a Prometheus that starts together with us is ready soon."""
REPORT_SECONDS = 10.0


@dataclass(frozen=True)
class HistoryFailure:
    """Why the history of a namespace could not be read."""

    reason: str


@dataclass
class _Progress:
    wanted: int = 0
    read: int = 0
    failed: int = 0
    logged_at: float = float("-inf")


@dataclass
class HistoryLoader:
    """Reads the history of wanted namespaces in the background."""

    clock: Clock
    reader: UsageHistoryReader
    _tasks: dict[str, asyncio.Task[UsageHistory | HistoryFailure]] = field(default_factory=dict)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_PARALLEL))
    _progress: _Progress = field(default_factory=_Progress)

    def want(self, namespace: str, known_keys: Iterable[str]) -> None:
        """Start reading a namespace, unless that has begun."""
        if namespace not in self._tasks:
            self._progress.wanted += 1
            self._tasks[namespace] = asyncio.ensure_future(self._read(namespace, frozenset(known_keys)))

    def take(self, namespace: str) -> UsageHistory | HistoryFailure | None:
        """Return the result for a namespace once, or None while it is being read."""
        task = self._tasks.get(namespace)
        if task is None or not task.done():
            return None
        del self._tasks[namespace]
        return task.result()

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of namespaces by state."""
        wanted, read, failed = self._progress.wanted, self._progress.read, self._progress.failed
        return {"reading": wanted - read - failed, "read": read, "failed": failed}

    async def finished(self, namespaces: Iterable[str]) -> None:
        """Wait until none of these namespaces is being read."""
        tasks = [task for namespace in namespaces if (task := self._tasks.get(namespace)) is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Stop reading."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.reader.client.close()

    async def _read(self, namespace: str, known_keys: frozenset[str]) -> UsageHistory | HistoryFailure:
        result: UsageHistory | HistoryFailure
        async with self._slots:
            try:
                result = await self._read_with_retries(namespace, known_keys)
                self._progress.read += 1
            except PrometheusError as error:
                result = HistoryFailure(str(error))
                self._progress.failed += 1
                log.warning(
                    "history of namespace %s cannot be read, its checkpoints are used: %s", namespace, error
                )
        self._report()
        return result

    async def _read_with_retries(self, namespace: str, known_keys: frozenset[str]) -> UsageHistory:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self.reader.read(namespace, self.clock.now(), known_keys)
            except PrometheusError as error:
                if attempt == ATTEMPTS or _is_final(error):
                    raise
                log.info("history of namespace %s: attempt %d failed: %s", namespace, attempt, error)
                await self.clock.sleep(RETRY_SECONDS)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _report(self) -> None:
        progress, now = self._progress, self.clock.monotonic()
        if self.counts["reading"] and now - progress.logged_at < REPORT_SECONDS:
            return
        progress.logged_at = now
        text = "history from Prometheus: %d of %d namespaces read, %d failed"
        log.info(text, progress.read, progress.wanted, progress.failed)


def _is_final(error: PrometheusError) -> bool:
    return isinstance(error, SlowHistoryError) or isinstance(error.__cause__, QueryRefusedError)


class CountedTransport(HttpTransport):
    """A transport to Prometheus that counts requests under upstream's metric names."""

    def __init__(self, clock: Clock, connection: Connection, metrics: RecommenderMetrics) -> None:
        super().__init__(clock, connection)
        self._now = clock.monotonic
        self._metrics = metrics

    async def request(self, request: Request) -> Response:
        """Send and count a request. Without a response its code is 0."""
        began, code = self._now(), 0
        try:
            answer = await super().request(request)
            code = answer.status
            return answer
        finally:
            labels = str(code), request.method.lower()
            self._metrics.prometheus_requests.labels(*labels).inc()
            self._metrics.prometheus_seconds.labels(*labels).observe(self._now() - began)


def make_history(
    clock: Clock, settings: HistorySettings, metrics: RecommenderMetrics
) -> HistoryLoader | None:
    """Return the loader that --storage names, or None for checkpoints."""
    reject_bad_values(settings)
    if settings.storage == CHECKPOINT:
        return None
    seconds = settings.prometheus_query_timeout.total_seconds()
    client = PrometheusClient(
        clock, CountedTransport(clock, _connection(clock, settings), metrics), deadline=seconds
    )
    return HistoryLoader(clock, UsageHistoryReader(client, _names(settings), _span(settings), seconds))


def _connection(clock: Clock, settings: HistorySettings) -> Connection:
    credentials = _credentials(clock, settings)
    check_address(settings.prometheus_address, carries_secret=credentials is not None)
    tls = TlsSettings(insecure=settings.prometheus_insecure)
    return Connection(settings.prometheus_address, credentials or StaticCredentials(), tls)


def _credentials(clock: Clock, settings: HistorySettings) -> Credentials | None:
    if settings.prometheus_bearer_token_file:
        return TokenFileCredentials(clock, Path(settings.prometheus_bearer_token_file))
    if settings.prometheus_bearer_token:
        return StaticCredentials(Credential(f"Bearer {settings.prometheus_bearer_token}"))
    if settings.prometheus_username:
        pair = f"{settings.prometheus_username}:{settings.prometheus_password}".encode()
        return StaticCredentials(Credential(f"Basic {b64encode(pair).decode('ascii')}"))
    return None


def _span(settings: HistorySettings) -> Span:
    length = _positive("--history-length", settings.history_length)
    return Span(length, _positive("--history-resolution", settings.history_resolution))


def _positive(flag: str, text: str) -> timedelta:
    try:
        duration = parse_long_duration(text)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from error
    if duration < timedelta(seconds=1):
        raise ValueError(f"{flag}={text}: must be a second or more")
    return duration


def _names(settings: HistorySettings) -> SeriesNames:
    return SeriesNames(
        cpu=settings.history_cpu_metric,
        memory=settings.history_memory_metric,
        job=settings.prometheus_cadvisor_job_name,
        pod_labels=settings.metric_for_pod_labels,
        pod_label_prefix=settings.pod_label_prefix,
        pod_namespace=settings.pod_namespace_label,
        pod_name=settings.pod_name_label,
        container_namespace=settings.container_namespace_label,
        container_pod=settings.container_pod_name_label,
        container_name=settings.container_name_label,
    )
