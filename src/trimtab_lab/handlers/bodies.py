"""Decode request bodies: type and name checks, unknown fields, conversion to the stored version."""

from trimtab.model.json.shape import describe
from trimtab_lab.apiserver.errors import bad_request
from trimtab_lab.apiserver.request import ApiRequest, ResourceRequest
from trimtab_lab.schemas.protobuf import decode_protobuf
from trimtab_lab.schemas.prune import prune
from trimtab_lab.schemas.shapes import shape_of_kind
from trimtab_lab.storage.codec import JSON, PROTOBUF, YAML, JsonObject, decode_body, duplicate_fields


def read_object(request: ResourceRequest) -> JsonObject:
    """Decode the object of a create or update and return it in the stored version."""
    if not request.body:
        raise bad_request("the request has no body; send the object as JSON")
    obj = decode_any(request)
    # Looking for fields given twice costs a second decoding, so only clients that ask for it pay.
    is_checked = request.option("fieldValidation") in ("Strict", "Warn")
    is_json = JSON in (request.content_type or JSON)
    return accept_object(obj, request, duplicate_fields(request.body) if is_checked and is_json else [])


def decode_any(request: ApiRequest) -> JsonObject:
    """Decode a body in JSON, YAML or protobuf."""
    if request.content_type.startswith(PROTOBUF):
        return decode_protobuf(request.body)
    return decode_body(request.body, request.content_type, (JSON, YAML))


def accept_object(obj: JsonObject, request: ResourceRequest, duplicates: list[str]) -> JsonObject:
    """Check and default an object in the request's version and return it in the stored version."""
    check_type(obj, request.resource.kind, request.api_version)
    prune_object(obj, request, duplicates)
    if request.method in ("PUT", "PATCH") and not obj["metadata"].get("name"):
        named = f"the name of the object ({request.info.name} based on URL)"
        raise bad_request(f"{named} was undeterminable: name must be provided")
    check_name(obj, request)
    request.resource.strategy.default(obj)
    return order_fields(request.to_storage_version(obj))


def prune_object(obj: JsonObject, request: ResourceRequest, duplicates: list[str]) -> None:
    """Drop unknown fields of an object in the request's version and report them."""
    if not isinstance(obj.setdefault("metadata", {}), dict):
        raise bad_request("metadata must be an object")
    resource, version = request.resource, request.info.version
    unknown = prune(obj, resource.shape(version), resource.kind, version, is_custom=resource.is_custom)
    report_fields(request, resource.kind, version, unknown, duplicates)


def order_fields(obj: JsonObject) -> JsonObject:
    """Put type and metadata first. Lists rely on it to strip the type cheaply."""
    first = {name: obj.get(name, {}) for name in ("kind", "apiVersion", "metadata")}
    rest = {name: value for name, value in obj.items() if name not in first and name != "status"}
    return {**first, **rest, **({"status": obj["status"]} if "status" in obj else {})}


def check_type(obj: JsonObject, kind: str, api_version: str) -> None:
    """Reject an object of another type. A missing type is taken from the path."""
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name, ""), str | None):
            shown = describe(obj[name])
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind}): {name} must be text, not {shown}"
            )
    for name, words, expected in (("apiVersion", "API version", api_version), ("kind", "kind", kind)):
        value = obj[name] = obj.setdefault(name, expected) or expected
        if value != expected:
            raise bad_request(
                f"the {words} in the data ({value}) does not match the expected {words} ({expected})"
            )


def check_name(obj: JsonObject, request: ResourceRequest) -> None:
    """Reject an object whose name or namespace is not the path's."""
    meta, info = obj["metadata"], request.info
    if info.name:
        name = meta["name"] = meta.get("name") or info.name
        if name != info.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({info.name})"
            )
    if request.resource.is_namespaced:
        meta["namespace"] = meta.get("namespace") or info.namespace
        if meta["namespace"] != info.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
    else:
        meta.pop("namespace", None)


def report_fields(
    request: ApiRequest, kind: str, version: str, unknown: list[str], duplicates: list[str]
) -> None:
    """Warn about dropped fields, or reject them, as `fieldValidation` asks."""
    mode = request.option("fieldValidation") or "Warn"
    if mode not in ("Strict", "Warn", "Ignore"):
        raise bad_request(f'invalid fieldValidation "{mode}"; use Strict, Warn or Ignore')
    problems = [f'unknown field "{path}"' for path in unknown]
    problems += [f'duplicate field "{path}"' for path in duplicates]
    if not problems or mode == "Ignore":
        return
    if mode == "Strict":
        what = f'{kind} in version "{version}" cannot be handled as a {kind}'
        raise bad_request(f"{what}: strict decoding error: {', '.join(problems)}")
    request.warnings.extend(problems)


def read_typed(request: ApiRequest, group: str, version: str, kind: str) -> JsonObject:
    """Decode the body of a subresource or review, whose type is not that of its resource."""
    obj = decode_any(request) if request.body else {}
    check_type(obj, kind, f"{group}/{version}" if group else version)
    unknown = prune(obj, shape_of_kind(group, version, kind), kind, version)
    report_fields(request, kind, version, unknown, [])
    obj.setdefault("metadata", {})
    return obj
