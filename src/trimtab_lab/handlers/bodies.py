"""What clients send: decoded bodies, checked types and names, unknown fields, metadata."""

import re
from datetime import datetime

from trimtab.model.core.metadata_validation import WholeMeta, validate_metadata, validate_metadata_update
from trimtab.model.core.server_rules import ServerRules
from trimtab.model.field_errors import FieldError
from trimtab.model.json.shape import describe
from trimtab.model.json.wire import convert
from trimtab.model.labels import names
from trimtab.model.status import bad_request
from trimtab.model.times import format_time
from trimtab_lab.apiserver.errors import invalid_value
from trimtab_lab.apiserver.request import ApiRequest, ResourceRequest
from trimtab_lab.kinds.registry import ServedResource
from trimtab_lab.schemas.protobuf import decode_protobuf
from trimtab_lab.schemas.shapes import prune, shape_of_kind
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


SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
SERVICE_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
    "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
RBAC = "rbac.authorization.k8s.io"
DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
#: What a client cannot set on create. A kind whose generation the server does not count keeps that of the client.
RESET = ("selfLink", *DELETION, "resourceVersion")
#: What a client cannot change on update.
KEPT = ("uid", "creationTimestamp", "generation", *DELETION, "generateName")
#: Collections that a typed server omits when they are empty.
OMITTED = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generateName")


def fill_on_create(obj: JsonObject, resource: ServedResource, uid: str, now: datetime) -> None:
    """Set what the server sets on a new object."""
    meta = obj["metadata"]
    for name in RESET:
        meta.pop(name, None)
    meta["uid"] = uid
    meta["creationTimestamp"] = format_time(now)
    if resource.has_generation:
        meta["generation"] = 1
    _drop_empty(meta)


def keep_on_update(obj: JsonObject, old: JsonObject) -> None:
    """Carry over what an update omits and a client cannot change."""
    meta, before = obj["metadata"], old["metadata"]
    for name in KEPT:
        if name in before and (name not in meta or name in ("generation", "creationTimestamp")):
            meta[name] = before[name]
        elif name not in before:
            meta.pop(name, None)
    meta["resourceVersion"] = before["resourceVersion"]
    meta.pop("selfLink", None)
    _drop_empty(meta)


def _drop_empty(meta: JsonObject) -> None:
    for name in OMITTED:
        if name in meta and not meta[name]:
            del meta[name]


def metadata_errors(obj: JsonObject, resource: ServedResource, rules: ServerRules) -> list[FieldError]:
    """Return what is wrong with a new object's metadata."""
    meta = obj["metadata"]
    errors = validate_metadata(convert(meta, WholeMeta), rules=rules)
    if not resource.is_namespaced:
        errors = [error for error in errors if error.field != "metadata.namespace"]
    if meta.get("name") and _has_own_name_rule(resource):
        errors = [error for error in errors if error.field != "metadata.name"]
        errors += _validate_name(meta["name"], resource)
    return errors


def _has_own_name_rule(resource: ServedResource) -> bool:
    return resource.group == RBAC or (not resource.group and resource.plural in ("namespaces", "services"))


def _validate_name(name: str, resource: ServedResource) -> list[FieldError]:
    if resource.group == RBAC:
        complaints = names.path_segment_problems(name)
    elif resource.plural == "namespaces":
        complaints = names.dns1123_label_problems(name)
    else:
        complaints = [] if SERVICE_NAME.match(name) else [SERVICE_RULE]
        complaints += ["must be no more than 63 characters"] if len(name) > 63 else []
    return [invalid_value("metadata.name", name, complaint) for complaint in complaints]


def metadata_update_errors(obj: JsonObject, old: JsonObject, rules: ServerRules) -> list[FieldError]:
    """Return what an update may not change in metadata."""
    if obj["metadata"] == old["metadata"]:
        return []
    new, before = (convert(item["metadata"], WholeMeta) for item in (obj, old))
    return validate_metadata_update(new, before, rules=rules)
