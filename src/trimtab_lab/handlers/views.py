"""The forms of an object in a response: JSON in some version, a table row, or metadata alone.

The Accept header picks the view. Lists and watch events use the same views.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from datetime import datetime

import msgspec

from trimtab.model.status import bad_request, not_acceptable
from trimtab_lab.apiserver.request import ResourceRequest
from trimtab_lab.handlers.bodies import order_fields
from trimtab_lab.storage.codec import JSON, YAML, JsonObject, encode
from trimtab_lab.storage.store import Entry
from trimtab_lab.tables.tables import table, table_columns

META_GROUP = "meta.k8s.io"
#: What the parameter `drop` of the Accept header may leave out, since Kubernetes 1.38.
DROP_MANAGED_FIELDS = "metadata.managedFields"
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class PlainView:
    """Objects as JSON in the request's version."""

    #: The key under which encoded events are cached, per change.
    form: str | None

    def __init__(self, request: ResourceRequest) -> None:
        self._request = request
        self._resource = request.resource
        self._is_stored_version = self._resource.stores(request.info.version)
        self.form = "" if self._is_stored_version else f"{self._resource.group}/{request.info.version}"

    def render(self, entry: Entry) -> bytes:
        if self._is_stored_version:
            return entry.raw
        return encode(order_fields(self._request.to_request_version(entry.decoded())))

    def render_list(self, entries: Iterable[Entry], meta: JsonObject) -> bytes:
        """Return a list. Items of built-in kinds omit their type, as a typed server's do."""
        api_version = self._request.api_version.encode()
        head = b'{"kind":"%s","apiVersion":"%s",' % (self._resource.list_kind.encode(), api_version)
        raws = [self.render(entry) for entry in entries]
        if self._resource.is_custom:
            meta = {"continue": "", **meta}  # lists of custom objects always carry the field
        else:
            item_type = b'{"kind":"%s","apiVersion":"%s",' % (self._resource.kind.encode(), api_version)
            skip = len(item_type)
            raws = [b"{" + raw[skip:] if raw.startswith(item_type) else raw for raw in raws]
        return b"".join((head, b'"metadata":', encode(meta), b',"items":[', b",".join(raws), b"]}\n"))

    def bookmark(self, meta: JsonObject) -> JsonObject:
        return {"kind": self._resource.kind, "apiVersion": self._request.api_version, "metadata": meta}


class MetadataView:
    """Only the metadata of objects."""

    def __init__(self, version: str) -> None:
        self._api_version = f"{META_GROUP}/{version}"
        self.form = f"metadata/{version}"

    def render(self, entry: Entry) -> bytes:
        return encode(self.bookmark(entry.decoded()["metadata"]))

    def render_list(self, entries: Iterable[Entry], meta: JsonObject) -> bytes:
        items = [self.bookmark(entry.decoded()["metadata"]) for entry in entries]
        kind = "PartialObjectMetadataList"
        return encode({"kind": kind, "apiVersion": self._api_version, "metadata": meta, "items": items})

    def bookmark(self, meta: JsonObject) -> JsonObject:
        return {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": meta}


class TableView:
    """Objects as rows, for `kubectl get`."""

    #: In a stream only the first table carries the columns, so encodings are not shared.
    form = None

    def __init__(self, request: ResourceRequest, now: Callable[[], datetime], include: str) -> None:
        self._request = request
        self._now = now
        self._include = include
        self._has_sent_columns = False

    def _table(self, entries: Iterable[Entry], meta: JsonObject) -> JsonObject:
        objects = [self._request.to_request_version(entry.decoded()) for entry in entries]
        body = table(self._request.resource, self._request.info.version, objects, self._now(), self._include)
        body["metadata"] = meta
        return body

    def render(self, entry: Entry) -> bytes:
        """Return a table of one row. In a stream only the first table has columns."""
        body = self._table([entry], {"resourceVersion": str(entry.version)})
        if self._has_sent_columns:
            body["columnDefinitions"] = None
        self._has_sent_columns = True
        return encode(body)

    def render_list(self, entries: Iterable[Entry], meta: JsonObject) -> bytes:
        return encode(self._table(entries, meta))

    def bookmark(self, meta: JsonObject) -> JsonObject:
        """Return a table with one row that holds only the metadata."""
        partial = {"kind": "PartialObjectMetadata", "apiVersion": f"{META_GROUP}/v1", "metadata": meta}
        columns = table_columns(self._request.resource, self._request.info.version)
        return {
            "kind": "Table",
            "apiVersion": f"{META_GROUP}/v1",
            "metadata": {"resourceVersion": meta["resourceVersion"]},
            "columnDefinitions": None,
            "rows": [{"cells": [None] * len(columns), "object": partial}],
        }


class DroppingView:
    """Objects in another view, without their managedFields."""

    def __init__(self, view: PlainView | MetadataView | TableView) -> None:
        self._view = view
        self.form = None if view.form is None else f"{view.form} without {DROP_MANAGED_FIELDS}"

    def render(self, entry: Entry) -> bytes:
        return self._view.render(_without_managed_fields(entry))

    def render_list(self, entries: Iterable[Entry], meta: JsonObject) -> bytes:
        return self._view.render_list(map(_without_managed_fields, entries), meta)

    def bookmark(self, meta: JsonObject) -> JsonObject:
        return self._view.bookmark(meta)


def _without_managed_fields(entry: Entry) -> Entry:
    """Return the entry without managedFields. Its other fields are not decoded."""
    fields = _FIELDS.decode(entry.raw)
    meta = _FIELDS.decode(fields["metadata"])
    if meta.pop("managedFields", None) is None:
        return entry
    bare = copy(entry)
    bare.raw = encode({**fields, "metadata": meta})
    return bare


View = PlainView | MetadataView | TableView | DroppingView


def choose_view(request: ResourceRequest, now: Callable[[], datetime]) -> View:
    """Return the first view of the Accept header that the server supports."""
    for clause in request.accept.split(",") or [""]:
        media, *pairs = (part.strip() for part in clause.split(";"))
        options = dict(pair.partition("=")[::2] for pair in pairs)
        drop = options.get("drop", "")
        view = _view_of(request, now, media, options) if drop in ("", DROP_MANAGED_FIELDS) else None
        if view is not None:
            return DroppingView(view) if drop else view
    raise not_acceptable((JSON, YAML))


def _view_of(
    request: ResourceRequest, now: Callable[[], datetime], media: str, options: Mapping[str, str]
) -> PlainView | MetadataView | TableView | None:
    """Return the view of a clause of the Accept header, or None if the server does not support it."""
    if media not in ("", "*/*", "application/*", JSON):
        return None
    wanted = options.get("as", "")
    if not wanted:
        return PlainView(request)
    if options.get("g") != META_GROUP or options.get("v") not in ("v1", "v1beta1"):
        return None
    if wanted == "Table":
        include = request.option("includeObject", "Metadata")
        if include not in ("None", "Metadata", "Object"):
            raise bad_request(f'unrecognized includeObject value: "{include}"')
        return TableView(request, now, include)
    if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        return MetadataView(options["v"])
    return None
