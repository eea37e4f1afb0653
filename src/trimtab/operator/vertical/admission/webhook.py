"""The admission component: serves reviews and renews its certificate, configurations and status Lease."""

import logging
from pathlib import Path
from urllib.parse import urlsplit

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.leases.lease import create_lease
from trimtab.cluster.resource import LEASES, Json
from trimtab.model.quantity import Quantity
from trimtab.model.times import format_micro_time
from trimtab.operator.settings.settings import Settings
from trimtab.operator.settings.vertical import STATUS_LEASE_NAMESPACE
from trimtab.operator.vertical.admission.app import AdmissionApp
from trimtab.operator.vertical.admission.certificates import (
    ORIGIN,
    Certificates,
    FileCertificates,
    SecretCertificates,
    Serving,
)
from trimtab.operator.vertical.admission.registration import Registration
from trimtab.operator.vertical.admission.reviews import Reviewer
from trimtab.operator.vertical.admission.tls import tls_context
from trimtab.operator.vertical.admission.vpa_lookup import VpaLookup
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.estimation import parse_quantity
from trimtab.operator.vertical.metrics import AdmissionMetrics
from trimtab.serving.certificates import CertificateError
from trimtab.serving.server import ClientLimits, served
from trimtab.serving.tls import load_pair

log = logging.getLogger(__name__)
REFRESH_SECONDS = 10.0
"""How often certificate and configurations are checked. The Lease has its own interval."""
_LEASE_SECONDS = 60
LIMITS = ClientLimits(idle_seconds=75, body_bytes=48 * 1024 * 1024, connections=512)
"""kube-apiserver is the only honest client. It keeps its connections for longer than a minute.

512 connections take 143 MiB. No address has a fixed share, because all reviews may come from one address.
"""


class AdmissionWebhook:
    """Serves `app`, and calls `refresh` periodically."""

    name = "admission"

    def __init__(
        self,
        client: Client,
        view: ClusterView,
        settings: Settings,
        metrics: AdmissionMetrics,
        *,
        instance: str = "trimtab",
        certificates: Certificates | None = None,
    ) -> None:
        clock = client.clock
        self._clock = clock
        self._client = client
        self._view = view
        self._settings = settings
        self._metrics = metrics
        self._instance = instance
        self._certificates = certificates or _certificates(clock, client, settings)
        self._tls = tls_context(settings)
        self._registration = Registration(client, settings)
        self._lease_interval = settings.admission.status_lease_update_interval.total_seconds()
        self._renewed_at: float | None = None
        self._serving: Serving | None = None
        self._missing = "none is loaded yet"
        """Why there is no certificate yet."""
        self._warnings: dict[str, str] = {}
        boost = settings.admission.max_allowed_cpu_boost
        most = parse_quantity("--max-allowed-cpu-boost", boost) if boost else Quantity.zero
        self.app = AdmissionApp(
            Reviewer(clock, VpaLookup(client, view, most), metrics, is_dry_run=client.is_dry_run),
            lambda: view.has_synced,
        )
        self.port: int | None = None

    def health(self) -> dict[str, str]:
        """Return why reviews cannot be answered: no certificate, or incomplete caches."""
        if not self._view.has_synced:
            return self._view.problems()
        return {} if self._serving is not None else {"certificate": self._missing}

    def warnings(self) -> dict[str, str]:
        """Return the problems that leave the webhook able to answer, by name.

        The API server would call no replica if all of them became unready for a reason that they share.
        """
        return {**self._view.problems(), **self._view.warnings(), **self._warnings}

    async def run(self) -> None:
        """Serve until cancelled, or raise CertificateError at once if the certificate is invalid."""
        serving = await self._first_certificate()
        await self._view.wait_synced()
        settings = self._settings
        self._present(serving)
        address, port = settings.admission.webhook_address, settings.admission.webhook_port
        async with served(self.app, address, port, tls=self._tls, limits=LIMITS) as self.port:
            while True:
                await self.refresh()
                await self._clock.sleep(min(REFRESH_SECONDS, self._lease_interval))

    async def _first_certificate(self) -> Serving:
        """Return the first pair. Ask again while the cluster does not store it, so that no other component ends."""
        while True:
            try:
                serving = await self._certificates.current()
            except errors.ClusterError as error:
                namespace = self._settings.namespace
                advice = (
                    f"; create it: kubectl create namespace {namespace}, or name another one with --namespace"
                )
                missing = f"{error}{advice if isinstance(error, errors.NotFound) else ''}"
            else:
                ORIGIN.check(serving.pair, self._clock.now())
                return serving
            if missing != self._missing:
                self._missing = missing
                log.warning("the webhook has no certificate: %s", missing)
            await self._clock.sleep(REFRESH_SECONDS)

    async def refresh(self) -> None:
        """Renew certificate, configurations and Lease. The next call repeats what failed."""
        problems: dict[str, str] = {}
        try:
            await self._renew_certificate()
        except (errors.ClusterError, ValueError) as error:  # CertificateError is a ValueError
            problems["certificate"] = str(error)
            log.warning("webhook configuration or certificate: %s", error)
        try:
            if not self._client.is_dry_run:
                await self._renew_lease()
        except errors.ClusterError as error:
            problems["lease"] = str(error)
            log.warning("admission lease: %s", error)
        self._warnings = problems
        self._metrics.show_problems({*problems, *(["caches"] if self._view.problems() else [])})

    async def _renew_certificate(self) -> None:
        current = await self._certificates.current()
        ORIGIN.check(current.pair, self._clock.now())
        # Publish the authority before serving its certificate, so that callers always trust the server.
        if self._settings.admission.register_webhook and not self._client.is_dry_run:
            await self._registration.ensure(current.bundle)
        self._present(current)

    def _present(self, fresh: Serving) -> None:
        """Present a pair from the next handshake on. Keep the last pair if OpenSSL rejects it."""
        pair = fresh.pair
        if self._serving is None or pair != self._serving.pair:
            try:
                # A context that rejects a pair may have lost its last one, so a spare context tries first.
                load_pair(tls_context(self._settings), pair.certificate_pem, pair.key_pem)
            except OSError as error:  # ssl.SSLError is one
                raise CertificateError(f"the webhook's certificate cannot be served: {error}") from error
            load_pair(self._tls, pair.certificate_pem, pair.key_pem)
            serial = f"{pair.certificate.serial_number:x}"
            log.info("serving a new certificate", extra={"facts": {"serial": serial}})
        self._serving = fresh
        self._metrics.certificate_expiry.set(pair.not_after.timestamp())

    async def _renew_lease(self) -> None:
        """Renew the Lease that shows upstream's updaters a running webhook. Every replica renews it."""
        now = self._clock.monotonic()
        # The interval may be no multiple of the refresh period: renew early rather than late.
        if (
            self._renewed_at is not None
            and now - self._renewed_at < self._lease_interval - REFRESH_SECONDS / 2
        ):
            return
        name = self._settings.admission.status_lease_name
        namespace = self._settings.admission.status_lease_namespace or STATUS_LEASE_NAMESPACE
        spec: Json = {
            "holderIdentity": self._instance,
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": format_micro_time(self._clock.now()),
        }
        try:
            await self._client.patch(LEASES, name, namespace, {"spec": spec})
        except errors.NotFound:
            body = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": name},
                "spec": spec,
            }
            await create_lease(self._client, LEASES, body, namespace)
        self._renewed_at = now


def _certificates(clock: Clock, client: Client, settings: Settings) -> Certificates:
    if settings.admission.tls_cert_file:
        authority = Path(settings.admission.tls_ca_file) if settings.admission.tls_ca_file else None
        return FileCertificates(
            clock, Path(settings.admission.tls_cert_file), Path(settings.admission.tls_key_file), authority
        )
    service = f"{settings.admission.webhook_service}.{settings.namespace}.svc"
    names = [service, f"{service}.cluster.local"]
    host = urlsplit(settings.admission.webhook_url).hostname
    return SecretCertificates(clock, client, settings.namespace, (*names, host) if host else tuple(names))
