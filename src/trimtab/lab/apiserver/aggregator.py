"""Aggregation: groups that another server serves, found through APIService objects and reached by proxy."""

import base64
from dataclasses import replace
from urllib.parse import urlencode

from trimtab.lab.apiserver.errors import StatusError
from trimtab.lab.apiserver.outbound import Call, Endpoint, Outbound, OutboundError
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse
from trimtab.lab.resources.registry import Registry
from trimtab.lab.storage.codec import JsonObject, decode
from trimtab.lab.storage.store import ObjectStore

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
        """Tell whether another server answers for a group version."""
        return bool(group) and self._service(group, version) is not None

    async def forward(self, request: ApiRequest, group: str, version: str) -> ApiResponse:
        """Hand a request on, with the user's identity in the headers that a front proxy sets."""
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
        found = self._outbound.endpoint_of_service(
            service["namespace"], service["name"], service.get("port", 443), ca_pem
        )
        skips = bool(spec.get("insecureSkipTLSVerify"))
        return replace(found, skips_verification=skips, shows_certificate=True)

    def _services(self) -> list[JsonObject]:
        found = [entry.decoded()["spec"] for entry in self._store.shelf(API_SERVICES).range("")]
        return [spec for spec in found if spec.get("service")]

    def groups(self) -> list[JsonObject]:
        """Return the groups of other servers in the old form."""
        names = dict.fromkeys(spec["group"] for spec in self._services())
        found = [self.group(name) for name in names if name not in self._registry.groups()]
        return [group for group in found if group is not None]

    def group(self, name: str) -> JsonObject | None:
        """Return one such group."""
        specs = sorted(
            (s for s in self._services() if s["group"] == name), key=lambda s: -s.get("versionPriority", 0)
        )
        if not specs:
            return None
        listed = [{"groupVersion": f"{name}/{spec['version']}", "version": spec["version"]} for spec in specs]
        return {
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": name,
            "versions": listed,
            "preferredVersion": listed[0],
        }

    async def discovered(self, request: ApiRequest) -> list[JsonObject]:
        """Ask the other servers what they serve, for aggregated discovery."""
        items: list[JsonObject] = []
        for group in self.groups():
            versions = []
            for one in group["versions"]:
                resources = await self._resources(request, group["name"], one["version"])
                fresh = "Stale" if resources is None else "Current"
                versions.append({"version": one["version"], "resources": resources or [], "freshness": fresh})
            items.append({"metadata": {"name": group["name"]}, "versions": versions})
        return items

    async def _resources(self, request: ApiRequest, group: str, version: str) -> list[JsonObject] | None:
        """Return a group version's resources, or None when its server does not answer."""
        path = f"/apis/{group}/{version}"
        ask = ApiRequest("GET", path, {}, {"accept": "application/json"}, user=request.user)
        try:
            answer = await self.forward(ask, group, version)
            listed = decode(answer.body)["resources"] if answer.status == 200 else None
        except (StatusError, ValueError, KeyError):
            return None
        if listed is None:
            return None
        # The custom metrics API lists `pods/http_requests` as resources, not as subresources.
        main = [one for one in listed if "/" not in one["name"] or group.endswith("metrics.k8s.io")]
        return [
            {
                "resource": one["name"],
                "responseKind": {"group": group, "version": version, "kind": one["kind"]},
                "scope": "Namespaced" if one.get("namespaced") else "Cluster",
                "singularResource": one.get("singularName", ""),
                "verbs": one.get("verbs", []),
            }
            for one in main
        ]
