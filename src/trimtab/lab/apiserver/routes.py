"""From a parsed path and verb to the code that answers."""

from dataclasses import dataclass

from trimtab.lab.apiserver.access_reviews import Reviews
from trimtab.lab.apiserver.aggregator import Aggregation
from trimtab.lab.apiserver.authentication import Tokens, service_account_user
from trimtab.lab.apiserver.discovery import (
    VERSION_INFO,
    DiscoveryDocuments,
    wants_aggregated,
)
from trimtab.lab.apiserver.errors import (
    StatusError,
    method_not_allowed,
    no_such_resource,
    not_acceptable,
)
from trimtab.lab.apiserver.openapi import OpenApi
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse, RequestPath
from trimtab.lab.handlers.create_update import WriteHandler
from trimtab.lab.handlers.delete import DeleteHandler
from trimtab.lab.handlers.get_list import ReadHandler
from trimtab.lab.handlers.patch import Patching
from trimtab.lab.handlers.pod_subresources import PodActions
from trimtab.lab.handlers.scale import Scales
from trimtab.lab.metrics.apis import GROUP as METRICS
from trimtab.lab.metrics.apis import MetricsApi
from trimtab.lab.resources.registry import Registry, ServedResource
from trimtab.lab.storage.codec import JsonObject, decode_body

WRITES = ("create", "update", "patch")
PARTS = ("get", "update", "patch")
SUBRESOURCE_VERBS = {
    "scale": PARTS,
    "resize": PARTS,
    "status": PARTS,
    "finalize": PARTS,
    "eviction": ("create",),
    "binding": ("create",),
    "token": ("create",),
    "log": ("get",),
    "ephemeralcontainers": (),  # told by discovery, as the real server does; nothing runs containers here
}
REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")


@dataclass(frozen=True)
class ResourceRoutes:
    """The verbs of resources and subresources."""

    registry: Registry
    reads: ReadHandler
    writes: WriteHandler
    patching: Patching
    deletion: DeleteHandler
    scales: Scales
    pods: PodActions
    reviews: Reviews
    metrics: MetricsApi
    tokens: Tokens

    async def answer(self, request: ApiRequest, target: RequestPath, verb: str) -> ApiResponse:
        """Answer a request on a resource."""
        resource = self.registry.find(target.group, target.version, target.resource)
        if resource is None and not self.registry.in_version(target.group, target.version):
            return ApiResponse.text("404 page not found\n", 404)
        if resource is None or target.rest or _is_misplaced(resource, target):
            raise no_such_resource()
        if target.subresource:
            return await self._subresource(request, resource, target, verb)
        if verb not in resource.verbs or (verb in WRITES and bool(target.name) is (verb == "create")):
            raise method_not_allowed()
        if resource.group in REVIEWS:
            return self.reviews.answer(request, resource, target)
        if resource.group == METRICS:
            core = self.registry.get("", resource.plural)
            assert core is not None, "pods and nodes are always served"
            return self.metrics.handle(request, resource, target, verb, core)
        return await self._verb(request, resource, target, verb)

    async def _verb(
        self, request: ApiRequest, resource: ServedResource, target: RequestPath, verb: str
    ) -> ApiResponse:
        if verb == "get":
            return self.reads.get(request, resource, target)
        if verb == "list":
            return self.reads.list_objects(request, resource, target)
        if verb == "watch":
            return self.reads.watch(request, resource, target)
        request.check_options()
        actions = {
            "create": self.writes.create,
            "update": self.writes.update,
            "patch": self.patching.patch,
            "delete": self.deletion.delete,
            "deletecollection": self.deletion.delete_collection,
        }
        return await actions[verb](request, resource, target)

    async def _subresource(
        self, request: ApiRequest, resource: ServedResource, target: RequestPath, verb: str
    ) -> ApiResponse:
        name = target.subresource
        if name not in resource.subresources:
            raise no_such_resource()
        if verb not in SUBRESOURCE_VERBS[name]:
            raise method_not_allowed()
        match name:
            case "scale":
                return await self.scales.handle(request, resource, target, verb)
            case "resize":
                return await self.pods.resize(request, resource, target, verb)
            case "eviction":
                return await self.pods.evict(request, resource, target)
            case "binding":
                return await self.pods.bind(request, resource, target)
            case "token":
                return self._token(request, resource, target)
            case "log":
                message = (
                    "the lab runs no containers, so there are no logs; use kubectl describe or get events"
                )
                raise StatusError(501, "NotImplemented", message)
        return await self._verb(
            request, resource, target, verb
        )  # status and finalize are parts of the object

    def _token(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Issue a token for a service account."""
        body = decode_body(request.body, request.content_type) if request.body else {}
        entry = self.reads.entry(resource, target)
        user = service_account_user(target.namespace, target.name, entry.uid)
        body.update(kind="TokenRequest", apiVersion="authentication.k8s.io/v1")
        body.setdefault("metadata", {"name": target.name, "namespace": target.namespace})
        body["status"] = {"token": self.tokens.issue(user), "expirationTimestamp": "2999-12-31T00:00:00Z"}
        return ApiResponse.of(body, 201)


def _is_misplaced(resource: ServedResource, target: RequestPath) -> bool:
    """Tell whether a path has a namespace where there is none, or lacks the one of a named object."""
    if resource.is_namespaced:
        return bool(target.name) and not target.namespace
    return bool(target.namespace) and resource.plural != "namespaces"


class NonResourceRoutes:
    """Everything that is not a resource: health, version, discovery, OpenAPI."""

    def __init__(self, registry: Registry, aggregation: Aggregation) -> None:
        self._discovery = DiscoveryDocuments(registry)
        self._openapi = OpenApi(registry)
        self._aggregation = aggregation

    async def answer(self, request: ApiRequest, target: RequestPath) -> ApiResponse:
        """Answer a GET on a path that is no resource."""
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        parts = target.rest
        if parts[0] in ("healthz", "livez", "readyz"):
            return ApiResponse.text("ok")
        if parts == ("version",):
            return ApiResponse.of(VERSION_INFO)
        if parts[0] == "openapi":
            return self._open_api(request, parts)
        if parts in (("api",), ("apis",)):
            return await self._roots(request, is_core=parts == ("api",))
        if (parts[0], len(parts)) in (("api", 2), ("apis", 3)):
            return await self._group_version(request, target)
        if parts[0] == "apis" and len(parts) == 2:
            found = self._discovery.group(parts[1]) or self._aggregation.group(parts[1])
            if found is not None:
                return ApiResponse.of(found)
        if parts == ("",):
            return ApiResponse.of(
                {
                    "paths": [
                        "/api",
                        "/apis",
                        "/healthz",
                        "/livez",
                        "/openapi/v2",
                        "/openapi/v3",
                        "/readyz",
                        "/version",
                    ]
                }
            )
        return ApiResponse.text("404 page not found\n", 404)

    async def _roots(self, request: ApiRequest, *, is_core: bool) -> ApiResponse:
        version = wants_aggregated(request)
        if version:
            extra = [] if is_core else await self._aggregation.discovered(request)
            body = self._discovery.aggregated(version, is_core=is_core, extra=extra)
            media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            response = ApiResponse.of(body)
            response.content_type = media
            return response
        if is_core:
            return ApiResponse.of(self._discovery.versions(request.headers.get("host", "")))
        return ApiResponse.of(self._discovery.groups(self._aggregation.groups()))

    async def _group_version(self, request: ApiRequest, target: RequestPath) -> ApiResponse:
        if self._aggregation.serves(target.group, target.version):
            return await self._aggregation.forward(request, target.group, target.version)
        found: JsonObject | None = self._discovery.resources(target.group, target.version)
        if found is None:
            return ApiResponse.text("404 page not found\n", 404)
        return ApiResponse.of(found)

    def _open_api(self, request: ApiRequest, parts: tuple[str, ...]) -> ApiResponse:
        if parts == ("openapi", "v2"):
            if "json" not in request.accept and "*/*" not in request.accept and request.accept:
                raise not_acceptable(["application/json"])
            return ApiResponse(200, self._openapi.v2())
        if parts == ("openapi", "v3"):
            return ApiResponse.of(self._openapi.index())
        found = self._openapi.v3("/".join(parts[2:])) if parts[:2] == ("openapi", "v3") else None
        if found is None:
            return ApiResponse.text("404 page not found\n", 404)
        return ApiResponse(200, found)
