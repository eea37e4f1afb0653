"""Keeps the webhook configurations up to date, or only their CA bundles.

The installation contains the configurations, and the webhook writes the CA bundles only. A webhook without such an
installation registers itself. The configurations select few objects, time out fast, and are never deleted.
"""

import base64
import logging
from collections.abc import Iterable

from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType
from trimtab.cluster.resource import Json, Resource
from trimtab.model.vpa.webhooks import (
    MUTATING_WEBHOOKS,
    UPSTREAM_NAME,
    VALIDATING_WEBHOOKS,
    Webhook,
    WebhookNamespaces,
    declare,
    in_namespaces,
)
from trimtab.operator.settings.declare import reject_bad_values
from trimtab.operator.settings.settings import Settings
from trimtab.operator.settings.vertical import reject_long_timeout

log = logging.getLogger(__name__)
NAMINGS = tuple(MUTATING_WEBHOOKS)
"""The values of --webhook-naming."""
WHOLE, CA_BUNDLE = "whole", "ca-bundle"
"""The values of --webhook-registration."""
_REGISTRATION = "admissionregistration.k8s.io"
MUTATING: Resource[Json] = Resource(
    _REGISTRATION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", Json, False
)
VALIDATING: Resource[Json] = Resource(
    _REGISTRATION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", Json, False
)


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
    """Return the mutating webhooks."""
    webhooks = MUTATING_WEBHOOKS[settings.admission.webhook_naming]
    return [_declared(webhook, settings, bundle) for webhook in webhooks]


def validating_webhooks(settings: Settings, bundle: bytes) -> list[Json]:
    """Return the validating webhooks."""
    return [_declared(webhook, settings, bundle) for webhook in VALIDATING_WEBHOOKS]


def _declared(webhook: Webhook, settings: Settings, bundle: bytes) -> Json:
    own = settings.admission
    reject_long_timeout(own)
    client: Json = {"caBundle": _encoded(bundle)}
    if own.webhook_url:
        client["url"] = own.webhook_url.rstrip("/") + webhook.path
    else:
        service = {"namespace": settings.namespace, "name": own.webhook_service, "port": 443}
        client["service"] = {**service, "path": webhook.path}
    return declare(
        webhook,
        client=client,
        failure_policy="Fail" if own.webhook_failure_policy_fail else "Ignore",
        timeout_seconds=own.webhook_timeout_seconds,
        namespaces=_selector(webhook.place, settings),
        has_native_vpas=settings.native_vpas,
    )


def _selector(place: WebhookNamespaces, settings: Settings) -> Json:
    """Select the watched namespaces, except those that the webhook leaves alone."""
    if place is WebhookNamespaces.OWN:
        return {"matchExpressions": [in_namespaces("In", [settings.namespace])]}
    rules = settings.namespace_rules
    left_out = rules.excluded if place is WebhookNamespaces.CHANGED else rules.ignored
    return {"matchExpressions": [*_term("In", settings.watch_namespaces), *_term("NotIn", left_out)]}


def _term(operator: str, names: Iterable[str]) -> list[Json]:
    return [in_namespaces(operator, sorted(set(names)))] if names else []


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
    """Applies the configurations that are missing or differ, or writes their CA bundles only."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._applied: dict[str, tuple[bytes, int]] = {}
        reject_bad_values(settings.admission)
        self._name, *self._others = sorted(
            (configuration_name(settings.namespace, naming) for naming in NAMINGS),
            key=lambda name: (
                name != configuration_name(settings.namespace, settings.admission.webhook_naming)
            ),
        )
        configurations(settings, b"")  # invalid settings raise at start

    async def ensure(self, bundle: bytes) -> None:
        """Publish the CA bundle. Apply configurations that are missing, outdated or edited, if they are ours."""
        if self._settings.admission.webhook_registration == CA_BUNDLE:
            for resource in (MUTATING, VALIDATING):
                await self._write_bundle(resource, _encoded(bundle))
            return
        for resource, wanted in configurations(self._settings, bundle):
            if self._applied.get(resource.plural) != (bundle, await self._generation(resource)):
                applied = await self._client.patch(resource, self._name, None, wanted, how=PatchType.APPLY)
                self._applied[resource.plural] = bundle, _generation_of(applied)
                log.info("%s %s is up to date", resource.kind, self._name)
        while self._others:
            await self._empty(self._others[-1])
            self._others.pop()

    async def _write_bundle(self, resource: Resource[Json], bundle: str) -> None:
        """Replace the CA bundles of a configuration that the installation contains, and nothing else."""
        try:
            stored = await self._client.get(resource, self._name)
        except errors.NotFound as error:
            raise ValueError(
                f"{resource.kind} {self._name} is missing; apply the installation again, or register with "
                f"--webhook-registration={WHOLE}"
            ) from error
        ours = [
            (index, webhook)
            for index, webhook in enumerate(stored.get("webhooks", ()))
            if self._is_ours(webhook)
        ]
        if not ours:
            raise ValueError(
                f"{resource.kind} {self._name} has no webhook that calls this server; apply the installation again"
            )
        operations: list[Json] = []
        for index, webhook in ours:
            if webhook["clientConfig"].get("caBundle") != bundle:
                path = f"/webhooks/{index}"
                # The position is only valid for the webhook that was read there.
                operations.append({"op": "test", "path": f"{path}/name", "value": webhook["name"]})
                operations.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": bundle})
        if operations:
            await self._client.patch(resource, self._name, None, operations, how=PatchType.JSON)
            log.info("%s %s has a new CA bundle", resource.kind, self._name)

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


def _encoded(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()
