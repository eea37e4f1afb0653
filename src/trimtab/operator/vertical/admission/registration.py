"""The webhook configurations: narrow, quick to give up on us, and never deleted on the way to a new version."""

import base64
import logging

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.patching import PatchType
from trimtab.cluster.resource import Json, Resource
from trimtab.operator.vertical.admission.reviews import (
    DEFAULT_VPAS,
    MUTATE_PODS,
    PROBE,
    VALIDATE_SCOPES,
    VALIDATE_VPAS,
)
from trimtab.operator.vertical.kinds import GROUP, VERSION
from trimtab.operator.vertical.probe import PROBE_LABEL
from trimtab.operator.vertical.settings import VerticalSettings

log = logging.getLogger(__name__)
NAME = "trimtab-vpa"
MOST_SECONDS = 3
_REGISTRATION = "admissionregistration.k8s.io"
MUTATING: Resource[Json] = Resource(
    _REGISTRATION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", Json, False
)
VALIDATING: Resource[Json] = Resource(
    _REGISTRATION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", Json, False
)
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_IS_CONTROLLED = {
    "name": "has-a-controller",
    # Without a controller no VPA can match, so the pod need not wait for us.
    "expression": "has(object.metadata.ownerReferences) && "
    "object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller)",
}


def configurations(settings: VerticalSettings, bundle: bytes) -> list[tuple[Resource[Json], Json]]:
    """Return both configurations as they should be."""
    return [
        (MUTATING, _configuration(MUTATING, mutating_webhooks(settings, bundle))),
        (VALIDATING, _configuration(VALIDATING, validating_webhooks(settings, bundle))),
    ]


def mutating_webhooks(settings: VerticalSettings, bundle: bytes) -> list[Json]:
    """Return the webhooks that may change an object."""
    excluded = sorted({"kube-system", settings.namespace, *settings.ignored_namespaces})
    return [
        {
            **_webhook(settings, bundle, "pods", MUTATE_PODS),
            "rules": [_rule("", "v1", "pods", "CREATE")],
            "namespaceSelector": _namespaces("NotIn", excluded),
            "matchConditions": [_IS_CONTROLLED],
            "reinvocationPolicy": "IfNeeded",
        },
        {
            **_webhook(settings, bundle, "probe", PROBE),
            "rules": [_rule("", "v1", "pods", "CREATE")],
            "namespaceSelector": _namespaces("In", [settings.namespace]),
            "objectSelector": {"matchExpressions": [{"key": PROBE_LABEL, "operator": "Exists"}]},
            "reinvocationPolicy": "Never",
        },
        {
            **_webhook(settings, bundle, "default-vpas", DEFAULT_VPAS),
            "rules": [_rule(GROUP, VERSION, "verticalpodautoscalers", "CREATE", "UPDATE")],
            "reinvocationPolicy": "Never",
        },
    ]


def validating_webhooks(settings: VerticalSettings, bundle: bytes) -> list[Json]:
    """Return the webhooks that may refuse an object; the CRDs refuse most of it even when we are away (S6)."""
    return [
        {
            **_webhook(settings, bundle, "validate-vpas", VALIDATE_VPAS),
            "rules": [_rule(GROUP, VERSION, "verticalpodautoscalers", "CREATE", "UPDATE")],
        },
        {
            **_webhook(settings, bundle, "validate-scopes", VALIDATE_SCOPES),
            "rules": [_rule(GROUP, VERSION, "vpascopes", "CREATE", "UPDATE")],
        },
    ]


def _webhook(settings: VerticalSettings, bundle: bytes, name: str, path: str) -> Json:
    if not 1 <= settings.webhook_timeout_seconds <= MOST_SECONDS:
        raise ValueError(
            f"--webhook-timeout-seconds={settings.webhook_timeout_seconds}: every pod creation waits this long when the "
            f"webhook hangs; use 1 to {MOST_SECONDS}"
        )
    client: Json = {"caBundle": base64.b64encode(bundle).decode()}
    if settings.webhook_url:
        client["url"] = settings.webhook_url.rstrip("/") + path
    else:
        service = {"namespace": settings.namespace, "name": settings.webhook_service, "port": 443}
        client["service"] = {**service, "path": path}
    return {
        "name": f"{name}.vpa.trimtab.dev",
        "clientConfig": client,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": settings.webhook_timeout_seconds,
    }


def _rule(group: str, version: str, plural: str, *operations: str) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [plural],
        "operations": list(operations),
        "scope": "Namespaced",
    }


def _namespaces(operator: str, names: list[str]) -> Json:
    return {"matchExpressions": [{"key": _NAMESPACE_NAME, "operator": operator, "values": names}]}


def _configuration(resource: Resource[Json], webhooks: list[Json]) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": NAME},
        "webhooks": webhooks,
    }


class Registration:
    """Keeps both configurations as they should be; what is right already is not written."""

    def __init__(self, client: Client, settings: VerticalSettings) -> None:
        self._client = client
        self._settings = settings
        self._applied: dict[str, tuple[bytes, int]] = {}

    async def ensure(self, bundle: bytes) -> None:
        """Apply what is missing, outdated or changed by somebody else."""
        for resource, wanted in configurations(self._settings, bundle):
            if self._applied.get(resource.plural) != (bundle, await self._generation(resource)):
                applied = await self._client.patch(resource, NAME, None, wanted, how=PatchType.APPLY)
                self._applied[resource.plural] = bundle, _generation_of(applied)
                log.info("%s %s is up to date", resource.kind, NAME)

    async def _generation(self, resource: Resource[Json]) -> int:
        try:
            return _generation_of(await self._client.get(resource, NAME))
        except errors.NotFound:
            return -1


def _generation_of(thing: Json) -> int:
    found = thing["metadata"].get("generation", 0)
    return int(found)
