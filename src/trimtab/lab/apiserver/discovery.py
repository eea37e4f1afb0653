"""Discovery: what is served, in the old form (a document per group version) and the aggregated one."""

from collections.abc import Iterable

from trimtab.lab.apiserver.request import ApiRequest
from trimtab.lab.resources.registry import Registry, ServedResource
from trimtab.lab.storage.codec import JsonObject

AGGREGATED = "apidiscovery.k8s.io"
VERSION_INFO: JsonObject = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+trimtab-lab",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
#: Subresources whose kind is not that of their resource: (group, version, kind) and verbs.
SUBRESOURCES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "binding": ("", "v1", "Binding", ("create",)),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}
#: Verbs of subresources that show the resource's own kind.
OWN_KIND: dict[str, tuple[str, ...]] = {
    "status": ("get", "patch", "update"),
    "resize": ("get", "patch", "update"),
    "ephemeralcontainers": ("get", "patch", "update"),
    "finalize": ("update",),
    "log": ("get",),
}


def wants_aggregated(request: ApiRequest) -> str:
    """Return the version of aggregated discovery that the client accepts, or nothing."""
    for clause in request.accept.split(","):
        options = dict(part.strip().partition("=")[::2] for part in clause.split(";")[1:])
        if options.get("g") == AGGREGATED and options.get("as") == "APIGroupDiscoveryList":
            version = options.get("v", "")
            if version in ("v2", "v2beta1"):
                return version
    return ""


class DiscoveryDocuments:
    """The discovery documents of one registry; aggregated servers add their own groups."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def versions(self, address: str) -> JsonObject:
        """Answer `/api`."""
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }

    def groups(self, extra: Iterable[JsonObject]) -> JsonObject:
        """Answer `/apis`."""
        known = [self.group(name) for name in self._registry.groups() if name]
        listed = [
            {k: v for k, v in group.items() if k not in ("kind", "apiVersion")}
            for group in (*known, *extra)
            if group
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}

    def group(self, name: str) -> JsonObject | None:
        """Answer `/apis/GROUP`."""
        versions = self._registry.groups().get(name)
        if not versions:
            return None
        listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
        return {
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": name,
            "versions": listed,
            "preferredVersion": listed[0],
        }

    def resources(self, group: str, version: str) -> JsonObject | None:
        """Answer `/apis/GROUP/VERSION`."""
        found = self._registry.in_version(group, version)
        if not found:
            return None
        listed = [entry for resource in found for entry in _entries(resource, version)]
        group_version = f"{group}/{version}" if group else version
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": listed,
        }

    def aggregated(self, version: str, *, is_core: bool, extra: Iterable[JsonObject] = ()) -> JsonObject:
        """Answer `/api` or `/apis` with everything in one document."""
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": one,
                        "resources": [
                            _aggregated(resource, one) for resource in self._registry.in_version(group, one)
                        ],
                        "freshness": "Current",
                    }
                    for one in versions
                ],
            }
            for group, versions in self._registry.groups().items()
            if (not group) is is_core
        ]
        kind, api_version = "APIGroupDiscoveryList", f"{AGGREGATED}/{version}"
        return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": [*items, *extra]}


def _subresources(resource: ServedResource, version: str) -> list[str]:
    if resource.is_custom:
        return [name for name in resource.subresources if name != "scale" or version in resource.scales]
    return list(resource.subresources)


def _entries(resource: ServedResource, version: str) -> list[JsonObject]:
    """Return the lines of a resource and its subresources in the old form."""
    main: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    lines = [main]
    for name in _subresources(resource, version):
        line: JsonObject = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.is_namespaced,
        }
        if name in SUBRESOURCES:
            group, sub_version, kind, verbs = SUBRESOURCES[name]
            line.update(group=group, version=sub_version, kind=kind, verbs=list(verbs))
        else:
            line.update(kind=resource.kind, verbs=list(OWN_KIND[name]))
        lines.append(line)
    return lines


def _aggregated(resource: ServedResource, version: str) -> JsonObject:
    entry: JsonObject = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    parts: list[JsonObject] = []
    for name in _subresources(resource, version):
        if name in SUBRESOURCES:
            group, sub_version, kind, verbs = SUBRESOURCES[name]
        else:
            group, sub_version, kind, verbs = resource.group, version, resource.kind, OWN_KIND[name]
        shown = {"group": group, "version": sub_version, "kind": kind}
        parts.append({"subresource": name, "responseKind": shown, "verbs": list(verbs)})
    if parts:
        entry["subresources"] = parts
    return entry
