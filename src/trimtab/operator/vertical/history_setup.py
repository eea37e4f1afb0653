"""From the settings to the reader of history: which Prometheus, how to prove ourselves, how things are called there."""

from base64 import b64encode
from datetime import timedelta
from pathlib import Path

from trimtab.clock import Clock
from trimtab.cluster.config.connection import Connection, Credential, Credentials, StaticCredentials
from trimtab.cluster.config.credentials import TokenFileCredentials
from trimtab.cluster.config.proxies import check_address
from trimtab.cluster.config.tls import TlsSettings
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport.transport import Request, Response
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.metrics.usage_history import SeriesNames, Span, UsageHistoryReader
from trimtab.model.times import parse_long_duration
from trimtab.operator.vertical.history import HistoryLoader
from trimtab.operator.vertical.history_settings import HistorySettings
from trimtab.operator.vertical.telemetry import RecommenderMetrics

CHECKPOINT, PROMETHEUS = "checkpoint", "prometheus"


class CountedTransport(HttpTransport):
    """A transport to Prometheus that counts its requests, under upstream's names."""

    def __init__(self, clock: Clock, connection: Connection, metrics: RecommenderMetrics) -> None:
        super().__init__(clock, connection)
        self._now = clock.monotonic
        self._metrics = metrics

    async def request(self, request: Request) -> Response:
        """Send and count; a request without an answer counts as code 0."""
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
    """Return what reads history at start; None if checkpoints alone do."""
    if settings.storage not in {CHECKPOINT, PROMETHEUS}:
        raise ValueError(f"--storage={settings.storage} is not known; use {CHECKPOINT} or {PROMETHEUS}")
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
        found = parse_long_duration(text)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from error
    if found < timedelta(seconds=1):
        raise ValueError(f"{flag}={text}: must be a second or more")
    return found


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
