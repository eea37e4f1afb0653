"""OpenAPI documents, as far as kubectl reads them: types for `explain`, patch types and options for `apply`."""

from collections.abc import Callable
from typing import Any

from trimtab_lab.handlers.patch import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from trimtab_lab.kinds.registry import Registry, ServedResource
from trimtab_lab.schemas.shapes import META, PREFIX, definitions, kinds
from trimtab_lab.storage.codec import JsonObject, encode

V3_PREFIX = "#/components/schemas/"
WRITE_OPTIONS = ("dryRun", "fieldManager", "fieldValidation")


class OpenApi:
    """The documents of a registry, cached until it changes."""

    def __init__(self, registry: Registry, version: str) -> None:
        self._info = {"title": "Kubernetes", "version": version}
        self._registry = registry
        self._generation = -1
        self._documents: dict[str, bytes] = {}

    def index(self) -> JsonObject:
        """Return the document of `/openapi/v3`."""
        generation = self._registry.generation
        return {
            "paths": {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={generation}"}
                for path in self._group_versions()
            }
        }

    def _group_versions(self) -> dict[str, tuple[str, str]]:
        return {
            f"apis/{group}/{version}" if group else f"api/{version}": (group, version)
            for group, versions in self._registry.groups().items()
            for version in versions
        }

    def v3(self, path: str) -> bytes | None:
        """Return the document of `/openapi/v3/apis/GROUP/VERSION`."""
        group_version = self._group_versions().get(path)
        return self._cached(path, lambda: self._v3_document(*group_version)) if group_version else None

    def v2(self) -> bytes:
        """Return the document of `/openapi/v2`."""
        return self._cached("v2", self._v2_document)

    def _cached(self, key: str, make: Callable[[], JsonObject]) -> bytes:
        if self._generation != self._registry.generation:
            self._documents.clear()
            self._generation = self._registry.generation
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
        components = {"schemas": schemas}
        document = {"openapi": "3.0.0", "info": self._info, "paths": paths, "components": components}
        return dict(_with_prefix(document))

    def _v2_document(self) -> JsonObject:
        paths: JsonObject = {}
        types: JsonObject = {}
        for group, version in self._group_versions().values():
            for resource in self._registry.in_version(group, version):
                name, schema = _type_of(resource, version)
                _add_types(name, schema, types)
                paths.update(_paths(resource, version, name, is_v3=False))
        return {"swagger": "2.0", "info": self._info, "paths": paths, "definitions": types}


def _type_of(resource: ServedResource, version: str) -> tuple[str, JsonObject]:
    """Return the name and schema of a resource's type."""
    gvk = {"group": resource.group, "version": version, "kind": resource.kind}
    if not resource.is_custom:
        name = kinds().get((resource.group, version, resource.kind))
        if name is not None:
            return name, definitions()[name]
        schema: JsonObject = {"type": "object", "x-kubernetes-group-version-kind": [gvk]}
        return f"lab.{resource.group}.{version}.{resource.kind}", schema
    reversed_group = ".".join(reversed(resource.group.split(".")))
    schema = dict(resource.schemas.get(version) or {})
    fields = {
        **(schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": f"{PREFIX}{META}ObjectMeta"},
    }
    schema.update({"type": "object", "properties": fields, "x-kubernetes-group-version-kind": [gvk]})
    return f"{reversed_group}.{version}.{resource.kind}", schema


def _add_types(name: str, schema: JsonObject, into: JsonObject) -> None:
    """Add a type and all types that it refers to."""
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
    root += "/namespaces/{namespace}" if resource.is_namespaced else ""
    collection = f"{root}/{resource.plural}"
    gvk = {"group": resource.group, "version": version, "kind": resource.kind}
    paths: JsonObject = {collection: {}}
    if "list" in resource.verbs:
        paths[collection]["get"] = _operation("list", gvk, type_name, is_v3=is_v3)
    if "create" in resource.verbs:
        paths[collection]["post"] = _operation("post", gvk, type_name, is_v3=is_v3)
    if "get" in resource.verbs:
        named = paths[collection + "/{name}"] = {}
        for method in ("get", "put", "patch", "delete"):
            if {"put": "update"}.get(method, method) in resource.verbs:
                named[method] = _operation(method, gvk, type_name, is_v3=is_v3, is_custom=resource.is_custom)
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
    """Replace the prefix of references by that of version 3."""
    if isinstance(document, list):
        return [_with_prefix(value) for value in document]
    if not isinstance(document, dict):
        return document
    converted = {key: _with_prefix(value) for key, value in document.items()}
    if isinstance(converted.get("$ref"), str):
        converted["$ref"] = converted["$ref"].replace(PREFIX, V3_PREFIX)
    return converted
