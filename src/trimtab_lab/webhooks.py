"""Webhooks: which of them a write concerns, and what they answer."""

import asyncio
import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

from trimtab.model.labels.selector import Selector
from trimtab.model.status import StatusError, internal
from trimtab_lab.admission import AdmissionAttributes, AdmissionPlugin
from trimtab_lab.apiserver.outbound import Call, Endpoint, Outbound, OutboundError
from trimtab_lab.kinds.workloads import selector_of
from trimtab_lab.patches import json_patch
from trimtab_lab.storage.codec import Identities, JsonObject, copy_of, decode, encode
from trimtab_lab.storage.store import ObjectStore

GROUP = "admissionregistration.k8s.io"


def _always(_attributes: AdmissionAttributes) -> bool:
    return True


def _has_controller(attributes: AdmissionAttributes) -> bool:
    references = (attributes.obj or {}).get("metadata", {}).get("ownerReferences") or ()
    return any(reference.get("controller") for reference in references)


HAS_CONTROLLER = (
    "has(object.metadata.ownerReferences) && "
    "object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller)"
)
#: The match conditions of our own webhooks.
CONDITIONS: dict[str, Callable[[AdmissionAttributes], bool]] = {
    HAS_CONTROLLER: _has_controller,
    f"request.kind.kind != 'Pod' || ({HAS_CONTROLLER})": lambda attributes: (
        attributes.request.resource.kind != "Pod" or _has_controller(attributes)
    ),
}


@dataclass(frozen=True)
class Hook:
    """A webhook of a configuration, ready to match."""

    name: str
    client: JsonObject
    rules: tuple[JsonObject, ...]
    namespaces: Selector
    objects: Selector
    conditions: tuple[str, ...]
    ignores_failure: bool
    is_reinvoked: bool
    timeout_seconds: int


class Hooks:
    """All webhooks of a cluster, decoded once per version of their configuration."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: dict[str, tuple[int, tuple[Hook, ...]]] = {}

    def matching(self, kind: str, attributes: AdmissionAttributes) -> list[Hook]:
        """Return the webhooks that match a write, in the order of their calls."""
        configurations = self._store.resource(f"{kind.lower()}webhookconfigurations.{GROUP}")
        if not configurations.entries or attributes.request.resource.group == GROUP:
            return []  # webhooks cannot lock themselves in
        hooks: list[Hook] = []
        for entry in configurations.all():
            known = self._known.get(entry.uid)
            if known is None or known[0] != entry.version:
                known = self._known[entry.uid] = (entry.version, _read(entry.decoded()))
            hooks += [hook for hook in known[1] if self._matches(hook, attributes)]
        return hooks

    def _matches(self, hook: Hook, attributes: AdmissionAttributes) -> bool:
        if not any(_matches_rule(rule, attributes) for rule in hook.rules):
            return False
        if not hook.namespaces.is_empty and not hook.namespaces.matches(self._namespace_labels(attributes)):
            return False
        objects = [obj for obj in (attributes.obj, attributes.old) if obj is not None]
        labels = [obj["metadata"].get("labels") or {} for obj in objects]
        if not hook.objects.is_empty and not any(map(hook.objects.matches, labels)):
            return False
        return all(CONDITIONS.get(condition, _always)(attributes) for condition in hook.conditions)

    def _namespace_labels(self, attributes: AdmissionAttributes) -> dict[str, str]:
        resource = attributes.request.resource
        if resource.plural == "namespaces" and not resource.group:
            labels = (attributes.obj or attributes.old or {}).get("metadata", {}).get("labels") or {}
            return dict(labels)
        entry = self._store.get("namespaces", attributes.request.info.namespace)
        return dict(entry.labels) if entry is not None else {}


def _read(configuration: JsonObject) -> tuple[Hook, ...]:
    return tuple(
        Hook(
            hook["name"],
            hook["clientConfig"],
            tuple(hook.get("rules") or ()),
            selector_of(hook.get("namespaceSelector") or {}),
            selector_of(hook.get("objectSelector") or {}),
            tuple(condition["expression"] for condition in hook.get("matchConditions") or ()),
            hook.get("failurePolicy") == "Ignore",
            hook.get("reinvocationPolicy") == "IfNeeded",
            hook.get("timeoutSeconds", 10),
        )
        for hook in configuration.get("webhooks") or ()
    )


def _matches_rule(rule: JsonObject, attributes: AdmissionAttributes) -> bool:
    resource, info = attributes.request.resource, attributes.request.info

    def listed(name: str, value: str) -> bool:
        values = rule.get(name) or ()
        return value in values or "*" in values

    if not listed("operations", attributes.operation) or not listed("apiGroups", resource.group):
        return False
    # matchPolicy Equivalent: a rule for another served version of the same resource applies as well.
    if not any(listed("apiVersions", version) for version in (info.version, *resource.versions)):
        return False
    scope = rule.get("scope", "*")
    if scope != "*" and (scope == "Namespaced") is not resource.is_namespaced:
        return False
    return any(
        _matches_resource(pattern, resource.plural, info.subresource)
        for pattern in rule.get("resources") or ()
    )


def _matches_resource(pattern: str, plural: str, subresource: str) -> bool:
    name, _, part = pattern.partition("/")
    return name in ("*", plural) and part in ("*", subresource)


REVIEW = "admission.k8s.io/v1"


class _CallFailedError(Exception):
    """A webhook could not be called, or its response is invalid."""


class Webhooks(AdmissionPlugin):
    """Calls the configured webhooks, mutating ones first."""

    def __init__(self, store: ObjectStore, identities: Identities, outbound: Outbound) -> None:
        self._hooks = Hooks(store)
        self._identities = identities
        self._outbound = outbound

    async def mutate(self, attributes: AdmissionAttributes) -> JsonObject | None:
        """Return the object after all mutating webhooks.

        Webhooks with `reinvocationPolicy: IfNeeded` are called again if a later webhook changed the object.
        """
        hooks = self._hooks.matching("Mutating", attributes)
        if not hooks or attributes.obj is None:
            return None
        results: list[tuple[Hook, JsonObject]] = []
        obj = attributes.obj
        for hook in hooks:
            obj = await self._mutate_by(hook, attributes.with_object(obj))
            results.append((hook, obj))
        for hook, result in results:
            if hook.is_reinvoked and result != obj:
                obj = await self._mutate_by(hook, attributes.with_object(obj))
        return obj

    async def _mutate_by(self, hook: Hook, attributes: AdmissionAttributes) -> JsonObject:
        assert attributes.obj is not None
        response = await self._review(hook, attributes)
        patch = (response or {}).get("patch")
        if not patch:
            return attributes.obj
        try:
            operations = json_patch.parse(base64.b64decode(patch, validate=True))
        except binascii.Error as problem:
            raise internal(f"webhook {hook.name}: the patch is not base64: {problem}") from problem
        changed = json_patch.apply(_versioned(attributes, attributes.obj), operations)
        if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
            raise internal(f"webhook {hook.name}: the patch leaves no object")
        return attributes.request.to_storage_version(changed)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise an error if a validating webhook rejects the write."""
        for hook in self._hooks.matching("Validating", attributes):
            await self._review(hook, attributes)

    async def _review(self, hook: Hook, attributes: AdmissionAttributes) -> JsonObject | None:
        """Return the response of a webhook that allows the write.

        A failure returns None if the webhook's failure policy is Ignore.
        """
        try:
            response = await self._call(hook, attributes)
        except _CallFailedError as problem:
            if hook.ignores_failure:
                return None
            raise internal(
                f'failed calling webhook "{hook.name}": failed to call webhook: {problem}'
            ) from problem
        attributes.request.warnings.extend(map(str, response.get("warnings") or ()))
        if response.get("allowed") is not True:
            raise _denied(hook.name, response.get("status") or {})
        return response

    async def _call(self, hook: Hook, attributes: AdmissionAttributes) -> JsonObject:
        uid = self._identities.uid()
        body = {"kind": "AdmissionReview", "apiVersion": REVIEW, "request": review_request(uid, attributes)}
        headers = {"content-type": "application/json", "accept": "application/json, */*"}
        try:
            endpoint, path = self._endpoint(hook.client)
            path += ("&" if "?" in path else "?") + f"timeout={hook.timeout_seconds}s"
            async with asyncio.timeout(hook.timeout_seconds):
                response = await self._outbound.call(
                    endpoint, Call("POST", path, headers, encode(body)), hook.timeout_seconds
                )
        except TimeoutError as problem:
            raise _CallFailedError("context deadline exceeded") from problem
        except OutboundError as problem:
            raise _CallFailedError(str(problem)) from problem
        if response.status != 200:
            raise _CallFailedError(
                f"an error on the server ({response.body[:200]!r}) has prevented the request from succeeding"
            )
        return _read_response(response.body, uid)

    def _endpoint(self, client: JsonObject) -> tuple[Endpoint, str]:
        ca_pem = base64.b64decode(client.get("caBundle", "")).decode()
        service = client.get("service")
        if service:
            port = service.get("port", 443)
            endpoint = self._outbound.endpoint_of_service(service["namespace"], service["name"], port, ca_pem)
            return endpoint, service.get("path", "/")
        scheme, _, rest = client["url"].partition("://")
        host, slash, path = rest.partition("/")
        return Endpoint(f"{scheme}://{host}", "", ca_pem), slash + path or "/"


def _read_response(body: bytes, uid: str) -> JsonObject:
    try:
        response = decode(body)["response"]
    except (ValueError, KeyError, TypeError) as problem:
        raise _CallFailedError(
            f"expected an AdmissionReview with a response, got: {body[:200]!r}"
        ) from problem
    if not isinstance(response, dict) or response.get("uid") != uid:
        raise _CallFailedError("expected response.uid to be the uid of the request")
    return response


def _denied(name: str, status: JsonObject) -> StatusError:
    message = f'admission webhook "{name}" denied the request'
    reason = status.get("message") or status.get("reason")
    message += f": {reason}" if reason else " without explanation"
    code = status.get("code") or 403
    return StatusError(code, message, status.get("details"), reason=status.get("reason") or "Forbidden")


def _versioned(attributes: AdmissionAttributes, obj: JsonObject) -> JsonObject:
    """Return the object in the request's version. Conversion changes its argument, so it gets a copy."""
    request = attributes.request
    return obj if request.resource.stores(request.info.version) else request.to_request_version(copy_of(obj))


def review_request(uid: str, attributes: AdmissionAttributes) -> JsonObject:
    resource, info, user = attributes.request.resource, attributes.request.info, attributes.request.user
    obj, old = attributes.obj, attributes.old
    kind = {"group": resource.group, "version": info.version, "kind": resource.kind}
    place = {"group": resource.group, "version": info.version, "resource": resource.plural}
    meta = (obj or old or {}).get("metadata", {})
    request: JsonObject = {
        "uid": uid,
        "kind": kind,
        "resource": place,
        "requestKind": kind,
        "requestResource": place,
        "name": meta.get("name", info.name),
        "operation": attributes.operation,
        "userInfo": {"username": user.name, "groups": list(user.groups)},
        "object": _versioned(attributes, obj) if obj is not None else None,
        "oldObject": _versioned(attributes, old) if old is not None else None,
        "dryRun": attributes.request.is_dry_run,
        "options": {"kind": f"{attributes.operation.title()}Options", "apiVersion": "meta.k8s.io/v1"},
    }
    if resource.is_namespaced:
        request["namespace"] = info.namespace
    if info.subresource:
        request["subResource"] = request["requestSubResource"] = info.subresource
    return request
