"""Checks before evictions that the admission webhook works.

Without the webhook an evicted pod comes back with the sizes of its template. So the updater creates a pod with
`dryRun=All` in its own namespace. The API server sends it through the whole chain (configuration, TLS, response,
patch) and stores nothing. Only the webhook writes the right annotation.
"""

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.resource import LEASES, PODS, Json
from trimtab.model.vpa.webhooks import PROBE_LABEL
from trimtab.operator.settings.vertical import STATUS_LEASE_NAMESPACE, UpdaterLoopSettings

PROBE_ANSWER = "trimtab.dev/admitted"


def probe_pod(challenge: str) -> Json:
    """Return the pod of a probe. It is never stored, so its image is never pulled."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "admission-probe-", "labels": {PROBE_LABEL: challenge}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "probe",
                    "image": "registry.k8s.io/pause:3.10",
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "resources": {
                        "requests": {"cpu": "1m", "memory": "1Mi"},
                        "limits": {"cpu": "1m", "memory": "1Mi"},
                    },
                }
            ],
        },
    }


class AdmissionProbe:
    """Creates, in a dry run, a pod that the webhook must change."""

    def __init__(self, clock: Clock, client: Client, namespace: str) -> None:
        self._clock = clock
        self._client = client
        self._namespace = namespace
        self._number = 0

    async def problem(self) -> str | None:
        """Return why the webhook may not work, or None if it changed the probe."""
        self._number += 1
        challenge = f"{self._clock.now():%Y%m%d%H%M%S}-{self._number}"
        try:
            made = await self._client.create(
                PODS, probe_pod(challenge), self._namespace, query=[("dryRun", "All")]
            )
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            return f"the admission probe could not be created: {error}"
        if made.metadata.annotations.get(PROBE_ANSWER) != challenge:
            return (
                f"the admission probe in namespace {self._namespace} came back unchanged: is the webhook registered, "
                "running and reachable from the API server?"
            )
        return None


class LeaseCheck:
    """Upstream's weaker check, by the age of the admission controller's Lease."""

    def __init__(self, clock: Clock, client: Client, settings: UpdaterLoopSettings) -> None:
        self._clock = clock
        self._client = client
        self._name = settings.admission_lease_name
        self._namespace = settings.admission_lease_namespace or STATUS_LEASE_NAMESPACE
        self._timeout = settings.admission_lease_timeout

    async def problem(self) -> str | None:
        """Return why the webhook may not run, or None if the Lease is fresh."""
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except errors.ClusterError as error:
            return f"the Lease of the admission controller could not be read: {error}"
        renewed = lease.spec.renew_time
        if renewed is None or self._clock.now() - renewed > self._timeout:
            return (
                f"Lease {self._namespace}/{self._name} was last renewed at {renewed}; is admission running?"
            )
        return None
