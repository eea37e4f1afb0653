"""The admission component: serve, keep the certificate and the configurations fresh, renew the status Lease."""

import logging
from pathlib import Path
from urllib.parse import urlsplit

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.resource import Json
from trimtab.cluster.resources import LEASES
from trimtab.model.times import format_micro_time
from trimtab.operator.vertical.admission.app import AdmissionApp
from trimtab.operator.vertical.admission.certificates import CertificateError
from trimtab.operator.vertical.admission.keeping import (
    Certificates,
    FileCertificates,
    SecretCertificates,
    Serving,
)
from trimtab.operator.vertical.admission.knowledge import Knowledge
from trimtab.operator.vertical.admission.registration import Registration
from trimtab.operator.vertical.admission.reviews import Reviewer
from trimtab.operator.vertical.admission.serving import TlsServer
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.probe import LEASE_NAME, LEASE_NAMESPACE
from trimtab.operator.vertical.settings import VerticalSettings
from trimtab.operator.vertical.telemetry import AdmissionMetrics

log = logging.getLogger(__name__)
REFRESH_SECONDS = 10.0
"""How often the Lease is renewed (as upstream does) and certificate and configurations are looked at."""
_LEASE_SECONDS = 60


class Admission:
    """The component; `app` alone answers reviews, `refresh` alone keeps the rest in order."""

    name = "admission"

    def __init__(
        self,
        client: Client,
        view: ClusterView,
        settings: VerticalSettings,
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
        self._registration = Registration(client, settings)
        self._problems: dict[str, str] = {"admission": "not started"}
        self.app = AdmissionApp(Reviewer(clock, Knowledge(client, view), metrics), lambda: view.has_synced)
        self.port: int | None = None

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name."""
        return {**self._view.problems(), **self._problems}

    async def run(self) -> None:
        """Serve until cancelled; a certificate that is not valid ends it at once, with the date."""
        serving = await self._certificates.current()
        serving.pair.check(self._clock.now())
        await self._view.wait_synced()
        server = TlsServer(self.app, self._settings.webhook_address, self._settings.webhook_port)
        server.use(serving.pair)
        async with server:
            self.port = server.port
            while True:
                fresh = await self.refresh()
                if fresh is not None and fresh.pair.certificate_pem != serving.pair.certificate_pem:
                    server.use(fresh.pair)
                    serving = fresh
                    log.info(
                        "serving a new certificate", extra={"facts": {"serial": f"{fresh.pair.serial:x}"}}
                    )
                await self._clock.sleep(REFRESH_SECONDS)

    async def refresh(self) -> Serving | None:
        """Look after certificate, configurations and Lease; what fails is tried again soon, and serving goes on."""
        problems: dict[str, str] = {}
        serving: Serving | None = None
        try:
            serving = await self._certificates.current()
            self._metrics.certificate_expiry.set(serving.pair.not_after.timestamp())
            # Trust first, then the pair: callers know the authority before they meet what it signed.
            if self._settings.register_webhook:
                await self._registration.ensure(serving.bundle)
        except (errors.ClusterError, CertificateError, ValueError) as error:
            problems["admission"] = str(error)
            log.warning("webhook configuration or certificate: %s", error)
        try:
            await self._renew_lease()
        except errors.ClusterError as error:
            problems["admission lease"] = str(error)
            log.warning("admission lease: %s", error)
        self._problems = problems
        return serving

    async def _renew_lease(self) -> None:
        """Tell updaters of upstream's kind that admission is alive; several copies may all do so."""
        spec: Json = {
            "holderIdentity": self._instance,
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": format_micro_time(self._clock.now()),
        }
        try:
            await self._client.patch(LEASES, LEASE_NAME, LEASE_NAMESPACE, {"spec": spec})
        except errors.NotFound:
            body = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": LEASE_NAME},
                "spec": spec,
            }
            await self._client.create(LEASES, body, LEASE_NAMESPACE)


def _certificates(clock: Clock, client: Client, settings: VerticalSettings) -> Certificates:
    if settings.tls_cert_file:
        authority = Path(settings.tls_ca_file) if settings.tls_ca_file else None
        return FileCertificates(clock, Path(settings.tls_cert_file), Path(settings.tls_key_file), authority)
    service = f"{settings.webhook_service}.{settings.namespace}.svc"
    names = [service, f"{service}.cluster.local"]
    host = urlsplit(settings.webhook_url).hostname
    return SecretCertificates(clock, client, settings.namespace, (*names, host) if host else tuple(names))
