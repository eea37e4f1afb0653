"""The server's part in object metadata: what it sets, what it keeps, and the validation of the rest."""

import re
from datetime import datetime

from trimtab.model.core.metadata_validation import WholeMeta, validate_metadata, validate_metadata_update
from trimtab.model.core.server_rules import ServerRules
from trimtab.model.field_errors import FieldError
from trimtab.model.json.wire import convert
from trimtab.model.labels import names
from trimtab.model.times import format_time
from trimtab_lab.apiserver.errors import invalid_value
from trimtab_lab.resources.registry import ServedResource
from trimtab_lab.storage.codec import JsonObject

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


def validate(obj: JsonObject, resource: ServedResource, rules: ServerRules) -> list[FieldError]:
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


def validate_update(obj: JsonObject, old: JsonObject, rules: ServerRules) -> list[FieldError]:
    """Return what an update may not change in metadata."""
    if obj["metadata"] == old["metadata"]:
        return []
    new, before = (convert(item["metadata"], WholeMeta) for item in (obj, old))
    return validate_metadata_update(new, before, rules=rules)
