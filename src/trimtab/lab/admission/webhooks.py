"""Admission webhooks: who is asked about a write, in which order, and what their answers do."""

import asyncio
import base64
import binascii

from trimtab.lab.admission import AdmissionAttributes
from trimtab.lab.admission.matching import Hook, Hooks
from trimtab.lab.apiserver.errors import StatusError, internal
from trimtab.lab.apiserver.outbound import Call, Endpoint, Outbound, OutboundError
from trimtab.lab.patches import json_patch
from trimtab.lab.storage.bootstrap import Identities
from trimtab.lab.storage.codec import JsonObject, decode, encode
from trimtab.lab.storage.store import ObjectStore

REVIEW = "admission.k8s.io/v1"


class _CallFailedError(Exception):
    """A webhook could not be asked, or its answer makes no sense."""


class Webhooks:
    """The admission step that asks the configured webhooks."""

    def __init__(self, store: ObjectStore, identities: Identities, outbound: Outbound) -> None:
        self._hooks = Hooks(store)
        self._identities = identities
        self._outbound = outbound

    async def mutate(self, attempt: AdmissionAttributes) -> JsonObject | None:
        """Let mutating webhooks change the object; those that ask for it see later changes once more."""
        hooks = self._hooks.matching("Mutating", attempt)
        if not hooks or attempt.obj is None:
            return None
        seen_by: list[tuple[Hook, JsonObject]] = []
        obj = attempt.obj
        for hook in hooks:
            obj = await self._mutate_by(hook, attempt.with_object(obj))
            seen_by.append((hook, obj))
        for hook, seen in seen_by:
            if hook.is_reinvoked and seen != obj:
                obj = await self._mutate_by(hook, attempt.with_object(obj))
        return obj

    async def _mutate_by(self, hook: Hook, attempt: AdmissionAttributes) -> JsonObject:
        assert attempt.obj is not None
        answer = await self._ask(hook, attempt)
        patch = (answer or {}).get("patch")
        if not patch:
            return attempt.obj
        try:
            operations = json_patch.parse(base64.b64decode(patch, validate=True))
        except binascii.Error as problem:
            raise internal(f"webhook {hook.name}: the patch is not base64: {problem}") from problem
        changed = json_patch.apply(_in_request_version(attempt, attempt.obj), operations)
        if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
            raise internal(f"webhook {hook.name}: the patch leaves no object")
        return _in_stored_version(attempt, changed)

    async def validate(self, attempt: AdmissionAttributes) -> None:
        """Let validating webhooks refuse the write."""
        for hook in self._hooks.matching("Validating", attempt):
            await self._ask(hook, attempt)

    async def _ask(self, hook: Hook, attempt: AdmissionAttributes) -> JsonObject | None:
        """Return the answer of a webhook that allows the write; None when it failed and may be ignored."""
        try:
            answer = await self._call(hook, attempt)
        except _CallFailedError as problem:
            if hook.ignores_failure:
                return None
            raise internal(
                f'failed calling webhook "{hook.name}": failed to call webhook: {problem}'
            ) from problem
        attempt.request.warnings.extend(str(one) for one in answer.get("warnings") or ())
        if answer.get("allowed") is not True:
            raise _denied(hook.name, answer.get("status") or {})
        return answer

    async def _call(self, hook: Hook, attempt: AdmissionAttributes) -> JsonObject:
        uid = self._identities.uid()
        body = {"kind": "AdmissionReview", "apiVersion": REVIEW, "request": review_request(uid, attempt)}
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
        return _read_answer(response.body, uid)

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


def _read_answer(body: bytes, uid: str) -> JsonObject:
    try:
        review = decode(body)
        answer = review["response"]
    except (ValueError, KeyError, TypeError) as problem:
        raise _CallFailedError(
            f"expected an AdmissionReview with a response, got: {body[:200]!r}"
        ) from problem
    if not isinstance(answer, dict) or answer.get("uid") != uid:
        raise _CallFailedError("expected response.uid to be the uid of the request")
    return answer


def _denied(name: str, status: JsonObject) -> StatusError:
    message = f'admission webhook "{name}" denied the request'
    why = status.get("message") or status.get("reason")
    message += f": {why}" if why else " without explanation"
    code = status.get("code") or 403
    return StatusError(code, status.get("reason") or "Forbidden", message, status.get("details"))


def _in_request_version(attempt: AdmissionAttributes, obj: JsonObject) -> JsonObject:
    resource, version = attempt.resource, attempt.target.version
    if (resource.group, version) == (resource.storage_group, resource.storage_version):
        return obj
    return resource.strategy.convert(decode(encode(obj)), resource.group, version)


def _in_stored_version(attempt: AdmissionAttributes, obj: JsonObject) -> JsonObject:
    resource = attempt.resource
    if (resource.group, attempt.target.version) == (resource.storage_group, resource.storage_version):
        return obj
    return resource.strategy.convert(obj, resource.storage_group, resource.storage_version)


def review_request(uid: str, attempt: AdmissionAttributes) -> JsonObject:
    """Return the request part of an AdmissionReview."""
    resource, target, user = attempt.resource, attempt.target, attempt.request.user
    kind = {"group": resource.group, "version": target.version, "kind": resource.kind}
    place = {"group": resource.group, "version": target.version, "resource": resource.plural}
    meta = (attempt.obj or attempt.old or {}).get("metadata", {})
    request: JsonObject = {
        "uid": uid,
        "kind": kind,
        "resource": place,
        "requestKind": kind,
        "requestResource": place,
        "name": meta.get("name", target.name),
        "operation": attempt.operation,
        "userInfo": {"username": user.name, "groups": list(user.groups)},
        "object": _in_request_version(attempt, attempt.obj) if attempt.obj is not None else None,
        "oldObject": _in_request_version(attempt, attempt.old) if attempt.old is not None else None,
        "dryRun": attempt.request.is_dry_run,
        "options": {"kind": f"{attempt.operation.title()}Options", "apiVersion": "meta.k8s.io/v1"},
    }
    if resource.is_namespaced:
        request["namespace"] = target.namespace
    if target.subresource:
        request["subResource"] = request["requestSubResource"] = target.subresource
    return request
