"""From request bodies to objects: decoding, type and name checks, unknown fields, conversion to the stored version."""

from trimtab.lab.apiserver.errors import bad_request
from trimtab.lab.apiserver.request import ApiRequest, RequestPath
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.schemas.protobuf import decode_protobuf
from trimtab.lab.schemas.prune import fit
from trimtab.lab.schemas.shapes import Shape, shape_of_kind
from trimtab.lab.storage.codec import (
    JSON,
    PROTOBUF,
    YAML,
    JsonObject,
    decode_body,
    duplicate_fields,
)
from trimtab.model.json.shape import describe


def read_object(request: ApiRequest, resource: ServedResource, target: RequestPath) -> JsonObject:
    """Decode the object of a create or update, checked against its path, in the stored version."""
    if not request.body:
        raise bad_request("the request has no body; send the object as JSON")
    obj = decode_any(request)
    return accept_object(obj, request, resource, target, read_duplicates(request))


def decode_any(request: ApiRequest) -> JsonObject:
    """Decode a body in any of the forms that clients send objects in."""
    if request.content_type.startswith(PROTOBUF):
        return decode_protobuf(request.body)
    return decode_body(request.body, request.content_type, (JSON, YAML))


def read_duplicates(request: ApiRequest) -> list[str]:
    """Return fields given twice, when the client asks about fields at all: looking for them costs a second decoding."""
    is_asked = request.option("fieldValidation") in ("Strict", "Warn")
    return duplicate_fields(request.body) if is_asked and JSON in (request.content_type or JSON) else []


def accept_object(
    obj: JsonObject, request: ApiRequest, resource: ServedResource, target: RequestPath, duplicates: list[str]
) -> JsonObject:
    """Check an object in the request's version and return it in the stored one."""
    check_type(obj, resource.kind, resource.api_version(target.version))
    if not isinstance(obj.setdefault("metadata", {}), dict):
        raise bad_request("metadata must be an object")
    unknown = fit(
        obj, resource.shape(target.version), resource.kind, target.version, is_custom=resource.is_custom
    )
    report_fields(request, resource.kind, target.version, unknown, duplicates)
    if request.method in ("PUT", "PATCH") and not obj["metadata"].get("name"):
        named = f"the name of the object ({target.name} based on URL)"
        raise bad_request(f"{named} was undeterminable: name must be provided")
    check_place(obj, resource, target)
    resource.strategy.default(obj)
    if (resource.group, target.version) != (resource.storage_group, resource.storage_version):
        obj = resource.strategy.convert(obj, resource.storage_group, resource.storage_version)
    return ordered(obj)


def ordered(obj: JsonObject) -> JsonObject:
    """Put the type and metadata first, which lists rely on to leave the type out cheaply."""
    first = {name: obj.get(name, {}) for name in ("kind", "apiVersion", "metadata")}
    rest = {name: value for name, value in obj.items() if name not in first and name != "status"}
    return {**first, **rest, **({"status": obj["status"]} if "status" in obj else {})}


def check_type(obj: JsonObject, kind: str, api_version: str) -> None:
    """Refuse an object of another type; a missing type is taken from the path."""
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name, ""), str | None):
            shown = describe(obj[name])
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind}): {name} must be text, not {shown}"
            )
    seen = obj.setdefault("apiVersion", api_version) or api_version
    obj["apiVersion"] = seen
    if seen != api_version:
        raise bad_request(
            f"the API version in the data ({seen}) does not match the expected API version ({api_version})"
        )
    seen = obj.setdefault("kind", kind) or kind
    obj["kind"] = seen
    if seen != kind:
        raise bad_request(f"the kind in the data ({seen}) does not match the expected kind ({kind})")


def check_place(obj: JsonObject, resource: ServedResource, target: RequestPath) -> None:
    """Refuse an object whose name or namespace is not the path's."""
    meta = obj["metadata"]
    if target.name:
        name = meta.get("name") or target.name
        if name != target.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({target.name})"
            )
        meta["name"] = name
    if resource.is_namespaced:
        namespace = meta.get("namespace") or target.namespace
        if namespace != target.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)


def report_fields(
    request: ApiRequest, kind: str, version: str, unknown: list[str], duplicates: list[str]
) -> None:
    """Tell the client about fields that were dropped, as strictly as it asked."""
    mode = request.option("fieldValidation") or "Warn"
    if mode not in ("Strict", "Warn", "Ignore"):
        raise bad_request(f'invalid fieldValidation "{mode}"; use Strict, Warn or Ignore')
    problems = [f'unknown field "{path}"' for path in unknown] + [
        f'duplicate field "{path}"' for path in duplicates
    ]
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
    shape: Shape = shape_of_kind(group, version, kind)
    unknown = fit(obj, shape, kind, version)
    report_fields(request, kind, version, unknown, [])
    obj.setdefault("metadata", {})
    return obj
