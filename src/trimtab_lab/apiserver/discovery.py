"""What is served: discovery documents, and the groups of other servers, which are reached by proxy."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from trimtab.model.core.server_rules import ServerRules
from trimtab.model.status import StatusError
from trimtab_lab.apiserver.outbound import Call, Endpoint, Outbound, OutboundError
from trimtab_lab.apiserver.request import ApiRequest, ApiResponse
from trimtab_lab.kinds.registry import Registry, ServedResource
from trimtab_lab.storage.codec import JsonObject, decode
from trimtab_lab.storage.store import ObjectStore

AGGREGATED = "apidiscovery.k8s.io"


def version_info(rules: ServerRules) -> JsonObject:
    major, minor, _ = rules.version.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{rules.version}+trimtab-lab",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


@dataclass(frozen=True)
class Subresource:
    """A subresource: the verbs in discovery, and its kind if it is not that of its resource."""

    verbs: tuple[str, ...]
    group_version_kind: tuple[str, str, str] | None = None
    #: The verbs that the lab handles, where they differ from discovery.
    handled: tuple[str, ...] | None = None

    @property
    def served(self) -> tuple[str, ...]:
        """Return the verbs that the lab handles."""
        return self.verbs if self.handled is None else self.handled


_CHANGE = ("get", "patch", "update")
SUBRESOURCES = {
    "scale": Subresource(_CHANGE, ("autoscaling", "v1", "Scale")),
    "eviction": Subresource(("create",), ("policy", "v1", "Eviction")),
    "binding": Subresource(("create",), ("", "v1", "Binding")),
    "token": Subresource(("create",), ("authentication.k8s.io", "v1", "TokenRequest")),
    "status": Subresource(_CHANGE),
    "resize": Subresource(_CHANGE),
    "finalize": Subresource(("update",), handled=_CHANGE),
    "log": Subresource(("get",)),
    # In discovery because the real server has it; the lab runs no containers.
    "ephemeralcontainers": Subresource(_CHANGE, handled=()),
}


def wants_aggregated(request: ApiRequest) -> str:
    """Return the version of aggregated discovery that the client accepts, or an empty text."""
    for clause in request.accept.split(","):
        options = dict(part.strip().partition("=")[::2] for part in clause.split(";")[1:])
        if options.get("g") == AGGREGATED and options.get("as") == "APIGroupDiscoveryList":
            version = options.get("v", "")
            if version in ("v2", "v2beta1"):
                return version
    return ""


class DiscoveryDocuments:
    """The discovery documents of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def versions(self, address: str) -> JsonObject:
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }

    def groups(self, extra: Iterable[JsonObject]) -> JsonObject:
        """Return the document of `/apis`, with the groups of aggregated servers."""
        own = [api_group(name, versions) for name, versions in self._registry.groups().items() if name]
        listed = [
            {field: value for field, value in group.items() if field not in ("kind", "apiVersion")}
            for group in (*own, *extra)
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}

    def group(self, name: str) -> JsonObject | None:
        versions = self._registry.groups().get(name)
        return api_group(name, versions) if versions else None

    def resources(self, group: str, version: str) -> JsonObject | None:
        resources = self._registry.in_version(group, version)
        if not resources:
            return None
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": [entry for resource in resources for entry in _entries(resource, version)],
        }

    def aggregated(self, version: str, *, is_core: bool, extra: Iterable[JsonObject] = ()) -> JsonObject:
        """Return the aggregated document of `/api` or `/apis`."""
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [self._aggregated_version(group, version) for version in versions],
            }
            for group, versions in self._registry.groups().items()
            if (not group) is is_core
        ]
        kind, api_version = "APIGroupDiscoveryList", f"{AGGREGATED}/{version}"
        return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": [*items, *extra]}

    def _aggregated_version(self, group: str, version: str) -> JsonObject:
        resources = [_aggregated(resource, version) for resource in self._registry.in_version(group, version)]
        return {"version": version, "resources": resources, "freshness": "Current"}


def _subresources(resource: ServedResource, version: str) -> list[tuple[str, Subresource]]:
    return [
        (name, SUBRESOURCES[name])
        for name in resource.subresources
        if name != "scale" or not resource.is_custom or version in resource.scales
    ]


def _names(resource: ServedResource) -> JsonObject:
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {field: values for field, values in names.items() if values}


def _entries(resource: ServedResource, version: str) -> list[JsonObject]:
    """Return the APIResources of a resource and its subresources."""
    main: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
        **_names(resource),
    }
    entries = [main]
    for name, subresource in _subresources(resource, version):
        entry: JsonObject = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.is_namespaced,
        }
        if subresource.group_version_kind is not None:
            entry |= zip(("group", "version", "kind"), subresource.group_version_kind, strict=True)
        else:
            entry["kind"] = resource.kind
        entries.append({**entry, "verbs": list(subresource.verbs)})
    return entries


def _aggregated(resource: ServedResource, version: str) -> JsonObject:
    """Return the APIResourceDiscovery of a resource."""
    own_kind = (resource.group, version, resource.kind)
    entry: JsonObject = {
        "resource": resource.plural,
        "responseKind": _response_kind(own_kind),
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
        **_names(resource),
    }
    subresources = [
        {
            "subresource": name,
            "responseKind": _response_kind(subresource.group_version_kind or own_kind),
            "verbs": list(subresource.verbs),
        }
        for name, subresource in _subresources(resource, version)
    ]
    return {**entry, "subresources": subresources} if subresources else entry


def _response_kind(group_version_kind: tuple[str, str, str]) -> JsonObject:
    return dict(zip(("group", "version", "kind"), group_version_kind, strict=True))


def api_group(name: str, versions: Iterable[str]) -> JsonObject:
    """Return the APIGroup of a group, preferred version first."""
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": listed,
        "preferredVersion": listed[0],
    }


API_SERVICES = "apiservices.apiregistration.k8s.io"
FORWARDED = ("accept", "content-type", "user-agent", "accept-encoding")
TIMEOUT_SECONDS = 60.0


class Aggregation:
    """The groups of other servers."""

    def __init__(self, store: ObjectStore, registry: Registry, outbound: Outbound) -> None:
        self._store = store
        self._registry = registry
        self._outbound = outbound

    def _service(self, group: str, version: str) -> JsonObject | None:
        entry = self._store.get(API_SERVICES, f"{version}.{group}")
        if entry is None:
            return None
        spec: JsonObject = entry.decoded()["spec"]
        return spec if spec.get("service") else None

    def serves(self, group: str, version: str) -> bool:
        """Return whether another server serves a group version."""
        return bool(group) and self._service(group, version) is not None

    async def forward(self, request: ApiRequest, group: str, version: str) -> ApiResponse:
        """Proxy a request, with the user's identity in front-proxy headers."""
        spec = self._service(group, version)
        assert spec is not None, "only called for groups that another server serves"
        service = spec["service"]
        try:
            endpoint = self._endpoint(spec, service)
            query = urlencode([(name, value) for name, values in request.query.items() for value in values])
            path = request.path + (f"?{query}" if query else "")
            headers = {name: request.headers[name] for name in FORWARDED if name in request.headers}
            headers["X-Remote-User"] = request.user.name
            timeout = None if request.option("watch") else TIMEOUT_SECONDS
            call = Call(request.method, path, headers, request.body, request.user.groups)
            return await self._outbound.call(endpoint, call, timeout)
        except OutboundError as problem:
            message = f"error trying to reach service: {problem}"
            raise StatusError(503, message) from problem

    def _endpoint(self, spec: JsonObject, service: JsonObject) -> Endpoint:
        ca_pem = base64.b64decode(spec.get("caBundle", "")).decode()
        port, skips = service.get("port", 443), bool(spec.get("insecureSkipTLSVerify"))
        endpoint = self._outbound.endpoint_of_service(service["namespace"], service["name"], port, ca_pem)
        return replace(endpoint, skips_verification=skips, shows_certificate=True)

    def _services(self) -> list[JsonObject]:
        specs = [entry.decoded()["spec"] for entry in self._store.resource(API_SERVICES).all()]
        return [spec for spec in specs if spec.get("service")]

    def groups(self) -> list[JsonObject]:
        """Return the APIGroups of other servers."""
        names = dict.fromkeys(spec["group"] for spec in self._services())
        groups = [self.group(name) for name in names if name not in self._registry.groups()]
        return [group for group in groups if group is not None]

    def group(self, name: str) -> JsonObject | None:
        """Return the APIGroup of a group of another server."""
        specs = [spec for spec in self._services() if spec["group"] == name]
        specs.sort(key=lambda spec: -spec.get("versionPriority", 0))
        return api_group(name, [spec["version"] for spec in specs]) if specs else None

    async def discovered(self, request: ApiRequest) -> list[JsonObject]:
        """Return the aggregated discovery of other servers."""
        items: list[JsonObject] = []
        for group in self.groups():
            versions = []
            for version in [listed["version"] for listed in group["versions"]]:
                resources = await self._resources(request, group["name"], version)
                freshness = "Stale" if resources is None else "Current"
                versions.append({"version": version, "resources": resources or [], "freshness": freshness})
            items.append({"metadata": {"name": group["name"]}, "versions": versions})
        return items

    async def _resources(self, request: ApiRequest, group: str, version: str) -> list[JsonObject] | None:
        """Return a group version's resources, or None when its server fails."""
        path = f"/apis/{group}/{version}"
        call = ApiRequest("GET", path, {}, {"accept": "application/json"}, user=request.user)
        try:
            response = await self.forward(call, group, version)
            listed = decode(response.body)["resources"] if response.status == 200 else None
        except (StatusError, ValueError, KeyError):
            return None
        if listed is None:
            return None
        return [
            {
                "resource": resource["name"],
                "responseKind": {"group": group, "version": version, "kind": resource["kind"]},
                "scope": "Namespaced" if resource.get("namespaced") else "Cluster",
                "singularResource": resource.get("singularName", ""),
                "verbs": resource.get("verbs", []),
            }
            for resource in listed
            # The custom metrics API lists `pods/http_requests` as resources, not as subresources.
            if "/" not in resource["name"] or group.endswith("metrics.k8s.io")
        ]
