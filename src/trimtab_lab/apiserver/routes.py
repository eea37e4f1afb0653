"""From the parsed path and the verb of a request to its handler."""

from collections.abc import Awaitable, Callable

from trimtab.model.core.server_rules import ServerRules
from trimtab.model.status import StatusError, method_not_allowed, no_such_resource, not_acceptable
from trimtab_lab.apiserver.access import (
    AUTHENTICATION,
    RbacAuthorizer,
    ReviewHandler,
    Tokens,
    service_account_user,
)
from trimtab_lab.apiserver.access import GROUPS as REVIEW_GROUPS
from trimtab_lab.apiserver.discovery import (
    SUBRESOURCES,
    Aggregation,
    DiscoveryDocuments,
    version_info,
    wants_aggregated,
)
from trimtab_lab.apiserver.openapi import OpenApi
from trimtab_lab.apiserver.request import (
    ApiRequest,
    ApiResponse,
    RequestInfo,
    ResourceRequest,
    page_not_found,
)
from trimtab_lab.handlers.bodies import read_typed
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.create_update import WriteHandler
from trimtab_lab.handlers.delete import DeleteHandler
from trimtab_lab.handlers.patch import PatchHandler
from trimtab_lab.handlers.read import ReadHandler
from trimtab_lab.handlers.subresources import PodHandler, ScaleHandler
from trimtab_lab.handlers.watch import WatchHandler
from trimtab_lab.kinds.registry import Registry, ServedResource
from trimtab_lab.metrics.apis import GROUP as METRICS
from trimtab_lab.metrics.apis import ResourceMetrics, ResourceMetricsHandler

Handler = Callable[[ResourceRequest], Awaitable[ApiResponse]]

READS = ("get", "list", "watch")
WRITES = ("create", "update", "patch")
PATHS = ("/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


class ResourceRoutes:
    """The handlers of resources and subresources."""

    def __init__(
        self, context: HandlerContext, tokens: Tokens, authorizer: RbacAuthorizer, metrics: ResourceMetrics
    ) -> None:
        self._context = context
        self._tokens = tokens
        reads, watches, writes = ReadHandler(context), WatchHandler(context), WriteHandler(context)
        patches, self.deletes = PatchHandler(context, writes), DeleteHandler(context, reads)
        pods = PodHandler(context, writes, self.deletes)
        self._reviews = ReviewHandler(tokens, authorizer)
        self._metrics = ResourceMetricsHandler(context, metrics, reads)
        self._verbs: dict[str, Handler] = {
            "get": reads.get,
            "list": reads.list_objects,
            "watch": watches.watch,
            "create": writes.create,
            "update": writes.update,
            "patch": patches.patch,
            "delete": self.deletes.delete,
            "deletecollection": self.deletes.delete_collection,
        }
        #: Subresources that are not part of the object, as status and finalize are.
        self._subresources: dict[str, Handler] = {
            "scale": ScaleHandler(context, writes).handle,
            "resize": pods.resize,
            "eviction": pods.evict,
            "binding": pods.bind,
            "token": self._create_token,
            "log": _read_log,
        }

    async def handle(self, request: ApiRequest, info: RequestInfo, verb: str) -> ApiResponse:
        registry = self._context.registry
        resource = registry.find(info.group, info.version, info.resource)
        if resource is None and not registry.in_version(info.group, info.version):
            return page_not_found()
        if resource is None or info.rest or _is_misplaced(resource, info):
            raise no_such_resource()
        handler = self._handler(resource, info, verb)
        return await handler(ResourceRequest(**vars(request), resource=resource, info=info))

    def _handler(self, resource: ServedResource, info: RequestInfo, verb: str) -> Handler:
        name = info.subresource
        if name:
            if name not in resource.subresources:
                raise no_such_resource()
            if verb not in SUBRESOURCES[name].served:
                raise method_not_allowed()
            if name in self._subresources:
                return self._subresources[name]
        elif verb not in resource.verbs or (verb in WRITES and bool(info.name) is (verb == "create")):
            raise method_not_allowed()
        if resource.group in REVIEW_GROUPS:
            return self._reviews.create
        if resource.group == METRICS:
            return self._metrics.handle
        return self._verbs[verb] if verb in READS else self._write(verb)

    def _write(self, verb: str) -> Handler:
        async def check_and_write(request: ResourceRequest) -> ApiResponse:
            request.check_options()
            return await self._verbs[verb](request)

        return check_and_write

    async def _create_token(self, request: ResourceRequest) -> ApiResponse:
        """Issue a token for a service account."""
        body = read_typed(request, AUTHENTICATION, "v1", "TokenRequest")
        entry, namespace, name = self._context.get(request), request.info.namespace, request.info.name
        user = service_account_user(namespace, name, entry.uid)
        body["metadata"] = {**body["metadata"], "name": name, "namespace": namespace}
        body["status"] = {"token": self._tokens.issue(user), "expirationTimestamp": "2999-12-31T00:00:00Z"}
        return ApiResponse.of(body, 201)


async def _read_log(_request: ResourceRequest) -> ApiResponse:
    message = "the lab runs no containers, so there are no logs; use kubectl describe or get events"
    raise StatusError(501, message)


def _is_misplaced(resource: ServedResource, info: RequestInfo) -> bool:
    """Return whether a cluster-scoped path has a namespace, or a namespaced name lacks it."""
    if resource.is_namespaced:
        return bool(info.name) and not info.namespace
    return bool(info.namespace) and resource.plural != "namespaces"


class NonResourceRoutes:
    """Paths that are not resources: health, version, discovery, OpenAPI."""

    def __init__(self, registry: Registry, aggregation: Aggregation, rules: ServerRules) -> None:
        self._version_info = version_info(rules)
        self._discovery = DiscoveryDocuments(registry)
        self._openapi = OpenApi(registry, self._version_info["gitVersion"])
        self._aggregation = aggregation

    async def handle(self, request: ApiRequest, info: RequestInfo) -> ApiResponse:
        """Return the response of a GET on a path that is not a resource."""
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        parts = info.rest
        if parts[0] in ("healthz", "livez", "readyz"):
            return ApiResponse.text("ok")
        if parts == ("version",):
            return ApiResponse.of(self._version_info)
        if parts[0] == "openapi":
            return self._open_api(request, parts)
        if parts in (("api",), ("apis",)):
            return await self._roots(request, is_core=parts == ("api",))
        if (parts[0], len(parts)) in (("api", 2), ("apis", 3)):
            return await self._group_version(request, info)
        if parts[0] == "apis" and len(parts) == 2:
            group = self._discovery.group(parts[1]) or self._aggregation.group(parts[1])
            if group is not None:
                return ApiResponse.of(group)
        if parts == ("",):
            return ApiResponse.of({"paths": list(PATHS)})
        return page_not_found()

    async def _roots(self, request: ApiRequest, *, is_core: bool) -> ApiResponse:
        version = wants_aggregated(request)
        if version:
            extra = [] if is_core else await self._aggregation.discovered(request)
            response = ApiResponse.of(self._discovery.aggregated(version, is_core=is_core, extra=extra))
            media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            response.content_type = media
            return response
        if is_core:
            return ApiResponse.of(self._discovery.versions(request.headers.get("host", "")))
        return ApiResponse.of(self._discovery.groups(self._aggregation.groups()))

    async def _group_version(self, request: ApiRequest, info: RequestInfo) -> ApiResponse:
        if self._aggregation.serves(info.group, info.version):
            return await self._aggregation.forward(request, info.group, info.version)
        resources = self._discovery.resources(info.group, info.version)
        return ApiResponse.of(resources) if resources is not None else page_not_found()

    def _open_api(self, request: ApiRequest, parts: tuple[str, ...]) -> ApiResponse:
        if parts == ("openapi", "v2"):
            if "json" not in request.accept and "*/*" not in request.accept and request.accept:
                raise not_acceptable(["application/json"])
            return ApiResponse(200, self._openapi.v2())
        if parts == ("openapi", "v3"):
            return ApiResponse.of(self._openapi.index())
        document = self._openapi.v3("/".join(parts[2:])) if parts[:2] == ("openapi", "v3") else None
        return ApiResponse(200, document) if document is not None else page_not_found()
