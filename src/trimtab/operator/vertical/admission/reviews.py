"""Answers admission reviews, whatever the bytes of the request are.

Pods are always allowed; a pod that cannot be read, or whose review fails, is created unchanged. Invalid VPAs and
VPAScopes are refused with the field and a hint. A dry run changes and refuses nothing. It warns about what it would
refuse, and leaves the probe unanswered, because it sizes no pods.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec

from trimtab.clock import Clock
from trimtab.decide.vertical.admission.admit import admit_pod
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.vpa.admission import Review, ReviewResponse, named_scopes, review_scope, review_vpa
from trimtab.model.vpa.webhooks import (
    DEFAULT_VPAS,
    MUTATE_PODS,
    PODS_AND_VPAS,
    PROBE,
    PROBE_LABEL,
    VALIDATE_SCOPES,
    VALIDATE_VPAS,
)
from trimtab.operator.vertical.admission.vpa_lookup import VpaLookup
from trimtab.operator.vertical.metrics import AdmissionMetrics, StepTimer
from trimtab.operator.vertical.updater.webhook_check import PROBE_ANSWER

log = logging.getLogger(__name__)
API_VERSION = "admission.k8s.io/v1"
Json = dict[str, Any]


class _Kind(wire.Wire):
    group: str = ""
    kind: str = ""


class _Request(wire.Wire):
    uid: str = ""
    kind: _Kind = _Kind()
    name: str = ""
    namespace: str = ""
    operation: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(wire.Wire):
    request: _Request | None = None


class Reviewer:
    """Answers the reviews of all webhooks."""

    def __init__(
        self, clock: Clock, lookup: VpaLookup, metrics: AdmissionMetrics, *, is_dry_run: bool = False
    ) -> None:
        self._clock = clock
        self._is_dry_run = is_dry_run
        self._lookup = lookup
        self._metrics = metrics
        self._answers: dict[str, tuple[str, Callable[[_Request], Awaitable[ReviewResponse]]]] = {
            MUTATE_PODS: ("Pod", self._mutate_pod),
            PROBE: ("probe", _answer_probe),
            DEFAULT_VPAS: ("VerticalPodAutoscaler", self._default_vpa),
            VALIDATE_VPAS: ("VerticalPodAutoscaler", self._validate_vpa),
            VALIDATE_SCOPES: ("VPAScope", self._validate_scope),
            PODS_AND_VPAS: ("Pod", self._mutate_pod_or_vpa),
        }

    @property
    def paths(self) -> frozenset[str]:
        """Return the paths of all webhooks."""
        return frozenset(self._answers)

    async def review(self, path: str, body: bytes) -> bytes:
        """Return the response to a review. Never raise."""
        began = self._clock.monotonic()
        timer = StepTimer(self._clock, self._metrics.steps)
        resource, answering = self._answers[path]
        uid = ""
        try:
            request = _read(body)
            timer.step("read_request")
            uid = request.uid
            resource = request.kind.kind if path == PODS_AND_VPAS and request.kind.kind else resource
            answer = await answering(request)
            if self._is_dry_run:
                answer = _as_dry_run(resource, answer)
            status = "applied" if answer.patch else "skipped" if answer.allowed else "refused"
        except (_UnreadableError, wire.WireError) as error:
            answer, status = _unreadable(path, str(error)), "unreadable"
        except Exception:  # a bug must not block the creation of objects
            log.exception("reviewing a %s", resource)
            answer, status = ReviewResponse(allowed=True), "error"
        timer.step("admit")
        encoded = _encode(uid, answer)
        timer.step("build_response")
        timer.total()
        self._metrics.latency.labels(status, resource).observe(self._clock.monotonic() - began)
        return encoded

    async def _mutate_pod(self, request: _Request) -> ReviewResponse:
        raw = _object(request.object)
        try:
            pod = wire.convert(raw, Pod)
        except (wire.WireError, RecursionError) as error:
            log.warning("a pod in namespace %s cannot be read: %s", request.namespace, error)
            return ReviewResponse(allowed=True)
        located = msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, namespace=request.namespace)
        )
        admission = admit_pod(raw, request.namespace, await self._lookup.admission_context(located))
        is_applied = bool(admission.operations) and not self._is_dry_run
        self._metrics.pods.labels("true" if is_applied else "false").inc()
        if admission.error:
            log.warning("a pod in namespace %s is left alone: %s", request.namespace, admission.error)
        return ReviewResponse(allowed=True, patch=list(admission.operations))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Measure how long sending a response takes."""
        timer = StepTimer(self._clock, self._metrics.steps)
        yield
        timer.step("write_response")

    async def _mutate_pod_or_vpa(self, request: _Request) -> ReviewResponse:
        return await (self._mutate_pod if request.kind.kind == "Pod" else self._review_vpa)(request)

    async def _default_vpa(self, request: _Request) -> ReviewResponse:
        """Complete or refuse a VPA. Refusing it here beats the schema's check, whose text says less."""
        full = await self._review_vpa(request)
        return ReviewResponse(allowed=full.allowed, patch=full.patch, status=full.status)

    async def _validate_vpa(self, request: _Request) -> ReviewResponse:
        full = await self._review_vpa(request)
        return ReviewResponse(allowed=full.allowed, warnings=full.warnings, status=full.status)

    async def _review_vpa(self, request: _Request) -> ReviewResponse:
        review = self._review(request)
        for wanted in named_scopes(review):
            if review.scopes is not None and wanted not in review.scopes:
                # The cache may lag behind a bundle that was applied just now.
                review = replace(review, scopes=await self._lookup.scopes_with(request.namespace, wanted))
        return review_vpa(review, self._lookup.view.gates)

    async def _validate_scope(self, request: _Request) -> ReviewResponse:
        return review_scope(self._review(request))

    def _review(self, request: _Request) -> Review:
        return Review(
            operation=request.operation,
            name=request.name,
            object=_object(request.object),
            old_object=_object(request.old_object),
            scopes=self._lookup.view.scope_names(request.namespace),
            group=request.kind.group,
        )


def _as_dry_run(resource: str, answer: ReviewResponse) -> ReviewResponse:
    if answer.patch and resource == "Pod":
        log.info("dry run: a pod would be changed", extra={"facts": {"operations": len(answer.patch)}})
    refusal = (answer.status or {}).get("message", "")
    warnings = [] if answer.allowed else [f"Trimtab is a dry run, otherwise it would refuse this: {refusal}"]
    return ReviewResponse(allowed=True, warnings=[*answer.warnings, *warnings])


class _UnreadableError(ValueError):
    """The body is not an admission review."""


def _read(body: bytes) -> _Request:
    try:
        review = wire.decode(body, _Review)
    except (wire.WireError, RecursionError) as error:
        raise _UnreadableError(f"the body is not an AdmissionReview: {error}") from error
    if review.request is None:
        raise _UnreadableError("the AdmissionReview has no request")
    return review.request


def _object(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _UnreadableError(f"the object cannot be read: {error}") from error


def _unreadable(path: str, message: str) -> ReviewResponse:
    """Allow a pod, and refuse any other object."""
    if path in {MUTATE_PODS, PODS_AND_VPAS}:
        return ReviewResponse(allowed=True)
    status = {"status": "Failure", "code": 400, "reason": "BadRequest", "message": message}
    return ReviewResponse(allowed=False, status=status)


async def _answer_probe(request: _Request) -> ReviewResponse:
    """Copy the challenge of the updater's probe into the annotation that the updater reads."""
    pod = _object(request.object)
    labels = wire.convert(pod, Pod).metadata.labels
    annotations = {PROBE_ANSWER: labels.get(PROBE_LABEL, "")}
    return ReviewResponse(
        allowed=True, patch=[{"op": "add", "path": "/metadata/annotations", "value": annotations}]
    )


def _encode(uid: str, answer: ReviewResponse) -> bytes:
    response: Json = {"uid": uid, "allowed": answer.allowed}
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(wire.encode(answer.patch)).decode()
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    if answer.status is not None:
        response["status"] = answer.status
    return wire.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
