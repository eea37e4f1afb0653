"""How objects leave the server: as they are stored, in another version, as rows of a table, or as metadata alone.

The client's Accept header picks the view; a list and each watch event go through the same one.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from trimtab.lab.apiserver.errors import bad_request, not_acceptable
from trimtab.lab.apiserver.request import ApiRequest
from trimtab.lab.handlers.bodies import ordered
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.storage.codec import JSON, YAML, JsonObject, encode
from trimtab.lab.storage.store import Entry
from trimtab.lab.tables.tables import table, table_columns

META_GROUP = "meta.k8s.io"


class View(Protocol):
    """One way to show the objects of a resource."""

    @property
    def form(self) -> str | None:
        """Distinguish cached encodings of the same change; None when they may not be shared."""
        ...

    def one(self, entry: Entry) -> bytes:
        """Return one object."""
        ...

    def many(self, entries: Iterable[Entry], meta: JsonObject) -> bytes:
        """Return a list."""
        ...

    def bookmark(self, meta: JsonObject) -> JsonObject:
        """Return the object of a bookmark event."""
        ...


class PlainView:
    """Objects as JSON in the asked-for version."""

    def __init__(self, resource: ServedResource, group: str, version: str) -> None:
        self._resource = resource
        self._group, self._version = group, version
        self._is_stored_form = (group, version) == (resource.storage_group, resource.storage_version)
        self.form = "" if self._is_stored_form else f"{group}/{version}"

    def one(self, entry: Entry) -> bytes:
        """Return one object."""
        if self._is_stored_form:
            return entry.raw
        return encode(ordered(self._resource.strategy.convert(entry.decoded(), self._group, self._version)))

    def many(self, entries: Iterable[Entry], meta: JsonObject) -> bytes:
        """Return a list; items of built-in kinds leave out their type, as a typed server's do."""
        api_version = f"{self._group}/{self._version}" if self._group else self._version
        head = b'{"kind":"%s","apiVersion":"%s",' % (self._resource.list_kind.encode(), api_version.encode())
        raws = [self.one(entry) for entry in entries]
        if self._resource.is_custom:
            meta = {"continue": "", **meta}  # lists of custom objects always carry the field
        else:
            type_text = b'{"kind":"%s","apiVersion":"%s",' % (
                self._resource.kind.encode(),
                api_version.encode(),
            )
            skip = len(type_text)
            raws = [b"{" + raw[skip:] if raw.startswith(type_text) else raw for raw in raws]
        return b"".join((head, b'"metadata":', encode(meta), b',"items":[', b",".join(raws), b"]}\n"))

    def bookmark(self, meta: JsonObject) -> JsonObject:
        """Return the object of a bookmark event."""
        api_version = f"{self._group}/{self._version}" if self._group else self._version
        return {"kind": self._resource.kind, "apiVersion": api_version, "metadata": meta}


class MetadataView:
    """Only the metadata of objects."""

    def __init__(self, version: str) -> None:
        self._api_version = f"{META_GROUP}/{version}"
        self.form = f"metadata/{version}"

    def _partial(self, entry: Entry) -> JsonObject:
        meta = entry.decoded()["metadata"]
        return {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": meta}

    def one(self, entry: Entry) -> bytes:
        """Return one object."""
        return encode(self._partial(entry))

    def many(self, entries: Iterable[Entry], meta: JsonObject) -> bytes:
        """Return a list."""
        items = [self._partial(entry) for entry in entries]
        kind = "PartialObjectMetadataList"
        return encode({"kind": kind, "apiVersion": self._api_version, "metadata": meta, "items": items})

    def bookmark(self, meta: JsonObject) -> JsonObject:
        """Return the object of a bookmark event."""
        return {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": meta}


class TableView:
    """Objects as rows, for `kubectl get`."""

    #: In a stream only the first table carries the columns, so encodings are not shared.
    form = None

    def __init__(
        self, resource: ServedResource, group: str, version: str, now: Callable[[], datetime], include: str
    ) -> None:
        self._resource, self._group, self._version = resource, group, version
        self._now = now
        self._include = include
        self._has_sent_columns = False

    def _objects(self, entries: Iterable[Entry]) -> list[JsonObject]:
        convert = self._resource.strategy.convert
        if (self._group, self._version) == (self._resource.storage_group, self._resource.storage_version):
            return [entry.decoded() for entry in entries]
        return [convert(entry.decoded(), self._group, self._version) for entry in entries]

    def one(self, entry: Entry) -> bytes:
        """Return a table of one row; in a stream only the first carries the columns."""
        meta = {"resourceVersion": str(entry.version)}
        body = table(self._resource, self._version, self._objects([entry]), self._now(), self._include)
        body["metadata"] = meta
        if self._has_sent_columns:
            body["columnDefinitions"] = None
        self._has_sent_columns = True
        return encode(body)

    def many(self, entries: Iterable[Entry], meta: JsonObject) -> bytes:
        """Return one table for the list."""
        body = table(self._resource, self._version, self._objects(entries), self._now(), self._include)
        body["metadata"] = meta
        return encode(body)

    def bookmark(self, meta: JsonObject) -> JsonObject:
        """Return the object of a bookmark event: a table with one row that holds only the metadata."""
        partial = {"kind": "PartialObjectMetadata", "apiVersion": f"{META_GROUP}/v1", "metadata": meta}
        cells = [None for _ in table_columns(self._resource, self._version)]
        return {
            "kind": "Table",
            "apiVersion": f"{META_GROUP}/v1",
            "metadata": {"resourceVersion": meta["resourceVersion"]},
            "columnDefinitions": None,
            "rows": [{"cells": cells, "object": partial}],
        }


def choose_view(
    request: ApiRequest, resource: ServedResource, version: str, now: Callable[[], datetime]
) -> View:
    """Return the first view of the Accept header that the server can give."""
    for clause in request.accept.split(",") or [""]:
        media, *pairs = (part.strip() for part in clause.split(";"))
        options = dict(pair.partition("=")[::2] for pair in pairs)
        if media not in ("", "*/*", "application/*", JSON):
            continue
        wanted = options.get("as", "")
        if not wanted:
            return PlainView(resource, resource.group, version)
        if options.get("g") != META_GROUP or options.get("v") not in ("v1", "v1beta1"):
            continue
        if wanted == "Table":
            include = request.option("includeObject", "Metadata")
            if include not in ("None", "Metadata", "Object"):
                raise bad_request(f'unrecognized includeObject value: "{include}"')
            return TableView(resource, resource.group, version, now, include)
        if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return MetadataView(options["v"])
    raise not_acceptable((JSON, YAML))
