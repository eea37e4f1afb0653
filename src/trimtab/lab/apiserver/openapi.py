"""OpenAPI documents, as far as kubectl reads them: types for `explain`, patch forms and options for `apply`."""

from typing import Any

from trimtab.lab.apiserver.discovery import VERSION_INFO
from trimtab.lab.handlers.patch import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from trimtab.lab.resources.registry import Registry, ServedResource
from trimtab.lab.schemas.shapes import META, PREFIX, definitions, kinds
from trimtab.lab.storage.codec import JsonObject, encode

V3_PREFIX = "#/components/schemas/"
INFO = {"title": "Kubernetes", "version": VERSION_INFO["gitVersion"]}
WRITE_OPTIONS = ("dryRun", "fieldManager", "fieldValidation")
#: HTTP method, verb in `x-kubernetes-action`, whether the path names an object.
ACTIONS = (("get", "get", True), ("put", "put", True), ("patch", "patch", True), ("delete", "delete", True))


class OpenApi:
    """Documents for what a registry serves, made when first asked for after a change."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made_at = -1
        self._documents: dict[str, bytes] = {}

    def index(self) -> JsonObject:
        """Answer `/openapi/v3`."""
        paths = [
            "api/v1" if not group else f"apis/{group}/{version}" for group, version in self._group_versions()
        ]
        mark = self._registry.generation
        return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={mark}"} for path in paths}}

    def _group_versions(self) -> list[tuple[str, str]]:
        return [
            (group, version) for group, versions in self._registry.groups().items() for version in versions
        ]

    def v3(self, path: str) -> bytes | None:
        """Answer `/openapi/v3/apis/GROUP/VERSION`."""
        for group, version in self._group_versions():
            if path == ("api/v1" if not group else f"apis/{group}/{version}"):
                return self._cached(path, lambda g=group, v=version: self._v3_document(g, v))
        return None

    def v2(self) -> bytes:
        """Answer `/openapi/v2`."""
        return self._cached("v2", self._v2_document)

    def _cached(self, key: str, make: Any) -> bytes:
        if self._made_at != self._registry.generation:
            self._documents.clear()
            self._made_at = self._registry.generation
        if key not in self._documents:
            self._documents[key] = encode(make())
        return self._documents[key]

    def _v3_document(self, group: str, version: str) -> JsonObject:
        paths: JsonObject = {}
        schemas: JsonObject = {}
        for resource in self._registry.in_version(group, version):
            name, schema = _type_of(resource, version)
            _add_types(name, schema, schemas)
            paths.update(_paths(resource, version, name, is_v3=True))
        document: JsonObject = {
            "openapi": "3.0.0",
            "info": INFO,
            "paths": paths,
            "components": {"schemas": schemas},
        }
        made: JsonObject = _with_prefix(document)
        return made

    def _v2_document(self) -> JsonObject:
        paths: JsonObject = {}
        types: JsonObject = {}
        for group, version in self._group_versions():
            for resource in self._registry.in_version(group, version):
                name, schema = _type_of(resource, version)
                _add_types(name, schema, types)
                paths.update(_paths(resource, version, name, is_v3=False))
        return {"swagger": "2.0", "info": INFO, "paths": paths, "definitions": types}


def _type_of(resource: ServedResource, version: str) -> tuple[str, JsonObject]:
    """Return the name and schema of a resource's type."""
    gvk = {"group": resource.group, "version": version, "kind": resource.kind}
    if not resource.is_custom:
        name = kinds().get((resource.group, version, resource.kind))
        if name is not None:
            return name, definitions()[name]
        return f"lab.{resource.group}.{version}.{resource.kind}", {
            "type": "object",
            "x-kubernetes-group-version-kind": [gvk],
        }
    reversed_group = ".".join(reversed(resource.group.split(".")))
    schema = dict(resource.schemas.get(version) or {})
    fields = dict(schema.get("properties") or {})
    fields["apiVersion"] = {"type": "string"}
    fields["kind"] = {"type": "string"}
    fields["metadata"] = {"$ref": f"{PREFIX}{META}ObjectMeta"}
    schema.update({"type": "object", "properties": fields, "x-kubernetes-group-version-kind": [gvk]})
    return f"{reversed_group}.{version}.{resource.kind}", schema


def _add_types(name: str, schema: JsonObject, into: JsonObject) -> None:
    """Add a type and everything it refers to."""
    into[name] = schema
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference.startswith(PREFIX):
                other = reference.removeprefix(PREFIX)
                if other not in into and other in definitions():
                    into[other] = definitions()[other]
                    waiting.append(into[other])
            waiting.extend(value for value in node.values() if isinstance(value, dict | list))
        else:
            waiting.extend(value for value in node if isinstance(value, dict | list))


def _paths(resource: ServedResource, version: str, type_name: str, *, is_v3: bool) -> JsonObject:
    root = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    collection = (
        f"{root}/namespaces/{{namespace}}/{resource.plural}"
        if resource.is_namespaced
        else f"{root}/{resource.plural}"
    )
    gvk = {"group": resource.group, "version": version, "kind": resource.kind}
    paths: JsonObject = {collection: {}}
    if "list" in resource.verbs:
        paths[collection]["get"] = _operation("list", gvk, type_name, is_v3=is_v3)
    if "create" in resource.verbs:
        paths[collection]["post"] = _operation("post", gvk, type_name, is_v3=is_v3)
    if "get" in resource.verbs:
        named = paths[collection + "/{name}"] = {}
        for method, action, _ in ACTIONS:
            if {"put": "update"}.get(method, method) in resource.verbs:
                named[method] = _operation(action, gvk, type_name, is_v3=is_v3, is_custom=resource.is_custom)
    return paths


def _operation(
    action: str, gvk: JsonObject, type_name: str, *, is_v3: bool, is_custom: bool = False
) -> JsonObject:
    operation: JsonObject = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk}
    reference = {"$ref": PREFIX + type_name}
    if is_v3:
        operation["responses"] = {
            "200": {"description": "OK", "content": {"application/json": {"schema": reference}}}
        }
    else:
        operation["responses"] = {"200": {"description": "OK", "schema": reference}}
    if action in ("post", "put", "patch"):
        kind = {"schema": {"type": "string"}} if is_v3 else {"type": "string"}
        operation["parameters"] = [{"name": name, "in": "query", **kind} for name in WRITE_OPTIONS]
    if action == "patch":
        forms = [JSON_PATCH, MERGE_PATCH, *([] if is_custom else [STRATEGIC_PATCH]), APPLY_PATCH]
        if is_v3:
            body = {"$ref": f"{PREFIX}{META}Patch"}
            operation["requestBody"] = {"content": {form: {"schema": body} for form in forms}}
        else:
            operation["consumes"] = forms
    return operation


def _with_prefix(document: Any) -> Any:
    """Point references at where version 3 keeps its schemas."""
    if isinstance(document, dict):
        return {
            key: value.replace(PREFIX, V3_PREFIX)
            if key == "$ref" and isinstance(value, str)
            else _with_prefix(value)
            for key, value in document.items()
        }
    if isinstance(document, list):
        return [_with_prefix(value) for value in document]
    return document
