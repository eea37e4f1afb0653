"""Keeps the webhook configurations up to date.

They select few objects, time out fast, and are never deleted during an upgrade.
"""

import base64
import logging
from collections.abc import Iterable

from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType
from trimtab.cluster.resource import Json, Resource
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.reviews import (
    DEFAULT_VPAS,
    MUTATE_PODS,
    PODS_AND_VPAS,
    PROBE,
    VALIDATE_SCOPES,
    VALIDATE_VPAS,
)
from trimtab.operator.vertical.kinds import GROUP, VERSION
from trimtab.operator.vertical.updater.webhook_check import PROBE_LABEL

log = logging.getLogger(__name__)
NAMINGS = ("trimtab", "upstream")
"""The values of --webhook-naming."""
UPSTREAM_NAME = "vpa-webhook-config"
UPSTREAM_WEBHOOK = "vpa.k8s.io"
MOST_SECONDS = {"trimtab": 3, "upstream": 30}
_REGISTRATION = "admissionregistration.k8s.io"
MUTATING: Resource[Json] = Resource(
    _REGISTRATION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", Json, False
)
VALIDATING: Resource[Json] = Resource(
    _REGISTRATION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", Json, False
)
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_NO_NAMESPACE = {"matchExpressions": [{"key": _NAMESPACE_NAME, "operator": "DoesNotExist"}]}
_IS_CONTROLLED = {
    "name": "has-a-controller",
    # No VPA matches a pod without a controller, so its creation need not wait for the webhook.
    "expression": "has(object.metadata.ownerReferences) && "
    "object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller)",
}

_IS_VPA_OR_CONTROLLED = {
    "name": "is-a-vpa-or-has-a-controller",
    "expression": f"request.kind.kind != 'Pod' || ({_IS_CONTROLLED['expression']})",
}


def _rule(group: str, version: str, plural: str, *operations: str) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [plural],
        "operations": list(operations),
        "scope": "Namespaced",
    }


_POD_RULE = _rule("", "v1", "pods", "CREATE")
_VPA_RULE = _rule(GROUP, VERSION, "verticalpodautoscalers", "CREATE", "UPDATE")


def configuration_name(namespace: str, naming: str = NAMINGS[0]) -> str:
    """Return the name of both configurations, which differs per installation by its namespace."""
    return UPSTREAM_NAME if naming == "upstream" else f"{namespace}-vpa"


def configurations(settings: Settings, bundle: bytes) -> list[tuple[Resource[Json], Json]]:
    """Return both desired configurations."""
    return [
        (MUTATING, _configuration(MUTATING, settings, mutating_webhooks(settings, bundle))),
        (VALIDATING, _configuration(VALIDATING, settings, validating_webhooks(settings, bundle))),
    ]


def mutating_webhooks(settings: Settings, bundle: bytes) -> list[Json]:
    """Return the mutating webhooks. Upstream's naming has one for pods and VPAs."""
    pods: Json = {
        **_webhook(settings, bundle, "pods", MUTATE_PODS),
        "rules": [_POD_RULE],
        "namespaceSelector": _watched_except(settings, settings.namespace_rules.excluded),
        "matchConditions": [_IS_CONTROLLED],
        "reinvocationPolicy": "IfNeeded",
    }
    vpas: Json = {
        **_webhook(settings, bundle, "default-vpas", DEFAULT_VPAS),
        "rules": [_VPA_RULE],
        "namespaceSelector": _watched_except(settings, settings.ignored_namespaces),
        "reinvocationPolicy": "Never",
    }
    both: Json = {
        **pods,
        **_webhook(settings, bundle, "", PODS_AND_VPAS),
        "name": UPSTREAM_WEBHOOK,
        "rules": [_POD_RULE, _VPA_RULE],
        "matchConditions": [_IS_VPA_OR_CONTROLLED],
    }
    return [
        *((both,) if settings.admission.webhook_naming == "upstream" else (pods, vpas)),
        {
            **_webhook(settings, bundle, "probe", PROBE),
            "rules": [_POD_RULE],
            # Without a running webhook the probe must come back unchanged, whatever --webhook-failure-policy-fail says.
            "failurePolicy": "Ignore",
            "namespaceSelector": _namespaces("In", [settings.namespace]),
            "objectSelector": {"matchExpressions": [{"key": PROBE_LABEL, "operator": "Exists"}]},
            "reinvocationPolicy": "Never",
        },
    ]


def validating_webhooks(settings: Settings, bundle: bytes) -> list[Json]:
    """Return the validating webhooks. Most checks are in the CRDs too, which need no running webhook."""
    where = {"namespaceSelector": _watched_except(settings, settings.ignored_namespaces)}
    return [
        {
            **_webhook(settings, bundle, "validate-vpas", VALIDATE_VPAS),
            "rules": [_VPA_RULE],
            **where,
        },
        {
            **_webhook(settings, bundle, "validate-scopes", VALIDATE_SCOPES),
            "rules": [_rule(GROUP, VERSION, "vpascopes", "CREATE", "UPDATE")],
            **where,
        },
    ]


def _webhook(settings: Settings, bundle: bytes, name: str, path: str) -> Json:
    most = MOST_SECONDS[settings.admission.webhook_naming]
    if not 1 <= settings.admission.webhook_timeout_seconds <= most:
        raise ValueError(
            f"--webhook-timeout-seconds={settings.admission.webhook_timeout_seconds}: every pod creation waits this long when the "
            f"webhook hangs; use 1 to {most}"
        )
    client: Json = {"caBundle": base64.b64encode(bundle).decode()}
    if settings.admission.webhook_url:
        client["url"] = settings.admission.webhook_url.rstrip("/") + path
    else:
        service = {"namespace": settings.namespace, "name": settings.admission.webhook_service, "port": 443}
        client["service"] = {**service, "path": path}
    return {
        "name": f"{name}.vpa.trimtab.dev",
        "clientConfig": client,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail" if settings.admission.webhook_failure_policy_fail else "Ignore",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": settings.admission.webhook_timeout_seconds,
    }


def _watched_except(settings: Settings, left_out: Iterable[str]) -> Json:
    """Select the watched namespaces, except those left out."""
    names = sorted(set(left_out))
    if not settings.watch_namespaces:
        return _namespaces("NotIn", names) if names else {}
    watched = sorted(set(settings.watch_namespaces) - set(names))
    # Every namespace has this label, so this selects none.
    return _namespaces("In", watched) if watched else _NO_NAMESPACE


def _namespaces(operator: str, names: list[str]) -> Json:
    return {"matchExpressions": [{"key": _NAMESPACE_NAME, "operator": operator, "values": names}]}


def _configuration(resource: Resource[Json], settings: Settings, webhooks: list[Json]) -> Json:
    labels = parse_labels(settings.admission.webhook_labels)
    name: Json = {"name": configuration_name(settings.namespace, settings.admission.webhook_naming)}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {**name, "labels": labels} if labels else name,
        "webhooks": webhooks,
    }


def parse_labels(text: str) -> dict[str, str]:
    """Parse `key1:value1,key2:value2`, or raise ValueError."""
    pairs = [part.partition(":") for part in text.strip('"').split(",")] if text else []
    if not all(colon and key.strip() for key, colon, _ in pairs):
        raise ValueError(f"--webhook-labels={text}: write key1:value1,key2:value2")
    return {key.strip(): value.strip() for key, _, value in pairs}


class Registration:
    """Applies the configurations that are missing or differ."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._applied: dict[str, tuple[bytes, int]] = {}
        if settings.admission.webhook_naming not in NAMINGS:
            known = " or ".join(NAMINGS)
            raise ValueError(
                f"--webhook-naming={settings.admission.webhook_naming} is not known; use {known}"
            )
        self._name, *self._others = sorted(
            (configuration_name(settings.namespace, naming) for naming in NAMINGS),
            key=lambda name: (
                name != configuration_name(settings.namespace, settings.admission.webhook_naming)
            ),
        )
        configurations(settings, b"")  # invalid settings raise at start

    async def ensure(self, bundle: bytes) -> None:
        """Apply configurations that are missing, outdated or edited."""
        for resource, wanted in configurations(self._settings, bundle):
            if self._applied.get(resource.plural) != (bundle, await self._generation(resource)):
                applied = await self._client.patch(resource, self._name, None, wanted, how=PatchType.APPLY)
                self._applied[resource.plural] = bundle, _generation_of(applied)
                log.info("%s %s is up to date", resource.kind, self._name)
        while self._others:
            await self._empty(self._others[-1])
            self._others.pop()

    async def _empty(self, name: str) -> None:
        """Remove our webhooks from configurations of the other naming, or each pod would be sized twice."""
        for resource in (MUTATING, VALIDATING):
            try:
                stored = await self._client.get(resource, name)
            except errors.NotFound:
                continue
            webhooks = stored.get("webhooks", ())
            # Upstream itself may use upstream's name. The other name belongs to this installation.
            is_shared = name == UPSTREAM_NAME
            kept = [webhook for webhook in webhooks if is_shared and not self._is_ours(webhook)]
            if len(kept) < len(webhooks):
                await self._client.patch(resource, name, None, {"webhooks": kept})

    def _is_ours(self, webhook: Json) -> bool:
        client, settings = webhook.get("clientConfig", {}), self._settings
        service = client.get("service") or {}
        if settings.admission.webhook_url:
            return str(client.get("url", "")).startswith(settings.admission.webhook_url)
        return (service.get("namespace"), service.get("name")) == (
            settings.namespace,
            settings.admission.webhook_service,
        )

    async def _generation(self, resource: Resource[Json]) -> int:
        try:
            return _generation_of(await self._client.get(resource, self._name))
        except errors.NotFound:
            return -1


def _generation_of(configuration: Json) -> int:
    return int(configuration["metadata"].get("generation", 0))
