"""Aggregation: API groups of other servers, registered by APIServices and reached by proxy."""

import base64
from dataclasses import replace
from urllib.parse import urlencode

from trimtab_lab.apiserver.discovery import api_group
from trimtab_lab.apiserver.errors import StatusError
from trimtab_lab.apiserver.outbound import Call, Endpoint, Outbound, OutboundError
from trimtab_lab.apiserver.request import ApiRequest, ApiResponse
from trimtab_lab.resources.registry import Registry
from trimtab_lab.storage.codec import JsonObject, decode
from trimtab_lab.storage.store import ObjectStore

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
            raise StatusError(503, "ServiceUnavailable", message) from problem

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
