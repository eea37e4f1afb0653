"""Discovery documents for kube-aggregator and clients: groups, versions, resources."""

from typing import Any

from trimtab.adapter.api.requests import CUSTOM_GROUP, EXTERNAL_GROUP
from trimtab.adapter.api.routes import versions_of
from trimtab.adapter.sources.source import Catalogue
from trimtab.model.json import wire

Json = dict[str, Any]
GROUPS = (CUSTOM_GROUP, EXTERNAL_GROUP)
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def group_list() -> bytes:
    """Return the APIGroupList of /apis."""
    return wire.encode(
        {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in GROUPS]}
    )


def is_aggregated(accept: str) -> bool:
    """Return whether a client accepts aggregated discovery, which kube-aggregator requests first."""
    return any(
        "as=APIGroupDiscoveryList" in media_type and "v=v2;" in f"{media_type.replace(' ', '')};"
        for media_type in accept.split(",")
    )


def aggregated(catalogue: Catalogue) -> bytes:
    """Return the APIGroupDiscoveryList of /apis with both groups, their versions and metrics."""
    items = []
    for name in GROUPS:
        versions = [
            {
                "version": version,
                "freshness": "Current",
                "resources": _discovery_resources(name, version, catalogue),
            }
            for version in versions_of(name)
        ]
        items.append({"metadata": {"name": name}, "versions": versions})
    return wire.encode(
        {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }
    )


def group(name: str) -> bytes:
    """Return the APIGroup of one group."""
    return wire.encode({"kind": "APIGroup", "apiVersion": "v1", **_group(name)})


def resource_list(name: str, version: str, catalogue: Catalogue) -> bytes:
    """Return the APIResourceList of a group version, with one entry per metric and resource."""
    if name == EXTERNAL_GROUP:
        resources = [
            _resource(metric, True, "ExternalMetricValueList") for metric in sorted(catalogue.external)
        ]
    else:
        resources = [
            _resource(f"{offer.resource}/{offer.metric}", offer.is_namespaced, "MetricValueList")
            for offer in sorted(catalogue.custom)
        ]
    return wire.encode(
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{name}/{version}",
            "resources": resources,
        }
    )


def openapi_v2() -> bytes:
    """Return an empty OpenAPI v2 document, which cannot express paths that are patterns."""
    info = {"title": "Trimtab metrics adapter", "version": "v1"}
    return wire.encode({"swagger": "2.0", "info": info, "paths": {}})


def openapi_v3() -> bytes:
    """Return an empty OpenAPI v3 index."""
    return wire.encode({"paths": {}})


def _discovery_resources(name: str, version: str, catalogue: Catalogue) -> list[Json]:
    if name == EXTERNAL_GROUP:
        kind = {"group": name, "version": version, "kind": "ExternalMetricValueList"}
        return [
            {
                "resource": metric,
                "responseKind": kind,
                "scope": "Namespaced",
                "singularResource": "",
                "verbs": ["get"],
            }
            for metric in sorted(catalogue.external)
        ]
    kind = {"group": name, "version": version, "kind": "MetricValueList"}
    parents: dict[tuple[str, bool], Json] = {}
    for offer in sorted(catalogue.custom):
        parent = parents.setdefault(
            (offer.resource, offer.is_namespaced),
            {
                "resource": offer.resource,
                # Only the metrics can be read here. They are subresources of the resource.
                "responseKind": {"group": "", "version": "", "kind": ""},
                "scope": "Namespaced" if offer.is_namespaced else "Cluster",
                "singularResource": "",
                "verbs": [],
                "subresources": [],
            },
        )
        parent["subresources"].append({"subresource": offer.metric, "responseKind": kind, "verbs": ["get"]})
    return list(parents.values())


def _group(name: str) -> Json:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions_of(name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(name: str, is_namespaced: bool, kind: str) -> Json:
    return {"name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind, "verbs": ["get"]}
