"""What kube-aggregator and clients read to learn what is served: groups, versions, resources."""

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
    """Return whether a client wants everything in one document, which kube-aggregator asks for first."""
    return any(
        "as=APIGroupDiscoveryList" in one and "v=v2;" in f"{one.replace(' ', '')};"
        for one in accept.split(",")
    )


def aggregated(catalogue: Catalogue) -> bytes:
    """Return the APIGroupDiscoveryList of /apis: both groups, their versions and metrics."""
    items = []
    for name in GROUPS:
        versions = [
            {"version": version, "freshness": "Current", "resources": _discovered(name, version, catalogue)}
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
    """Return one APIGroup."""
    return wire.encode({"kind": "APIGroup", "apiVersion": "v1", **_group(name)})


def resource_list(name: str, version: str, catalogue: Catalogue) -> bytes:
    """Return the APIResourceList of a group version: one entry per metric and kind of object."""
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
    """Return an empty OpenAPI v2 document: the paths are patterns, which it cannot express."""
    info = {"title": "Trimtab metrics adapter", "version": "v1"}
    return wire.encode({"swagger": "2.0", "info": info, "paths": {}})


def openapi_v3() -> bytes:
    """Return an empty OpenAPI v3 index."""
    return wire.encode({"paths": {}})


def _discovered(name: str, version: str, catalogue: Catalogue) -> list[Json]:
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
    found: dict[tuple[str, bool], Json] = {}
    for offer in sorted(catalogue.custom):
        parent = found.setdefault(
            (offer.resource, offer.is_namespaced),
            {
                "resource": offer.resource,
                # The resource itself cannot be read here, only its metrics, which are its subresources.
                "responseKind": {"group": "", "version": "", "kind": ""},
                "scope": "Namespaced" if offer.is_namespaced else "Cluster",
                "singularResource": "",
                "verbs": [],
                "subresources": [],
            },
        )
        parent["subresources"].append({"subresource": offer.metric, "responseKind": kind, "verbs": ["get"]})
    return list(found.values())


def _group(name: str) -> Json:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions_of(name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(name: str, is_namespaced: bool, kind: str) -> Json:
    return {"name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind, "verbs": ["get"]}
