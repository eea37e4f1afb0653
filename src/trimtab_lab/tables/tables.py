"""Objects as a table."""

import re
from datetime import datetime
from typing import Any

from trimtab.model.times import parse_time
from trimtab_lab.kinds.registry import ServedResource, TableColumn
from trimtab_lab.schemas.shapes import is_time
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.tables.rows import BUILTIN, age

CREATION = ".metadata.creationTimestamp"
NAME = TableColumn("Name", "", format="name", description="The name of the object, unique in its namespace.")
AGE = TableColumn("Age", CREATION, type="date", description="The time since creation.")
CREATED_AT = TableColumn("Created At", CREATION, type="date", description="When the object was created.")


def table_columns(resource: ServedResource, version: str) -> tuple[TableColumn, ...]:
    if resource.is_custom:
        return (NAME, *(resource.columns.get(version) or (AGE,)))
    builtin = BUILTIN.get((resource.group, resource.plural))
    if builtin is not None:
        return builtin[0]
    return (NAME, CREATED_AT)


def table(
    resource: ServedResource, version: str, objects: list[JsonObject], now: datetime, include: str
) -> JsonObject:
    columns = table_columns(resource, version)
    rows = [{"cells": _cells(resource, columns, obj, now), **_row_object(obj, include)} for obj in objects]
    has_printer = resource.is_custom or (resource.group, resource.plural) in BUILTIN
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [_definition(column) for column in columns],
        # The API server's fall-back for kinds without columns of their own writes no rows as null.
        "rows": rows if rows or has_printer else None,
    }


def _definition(column: TableColumn) -> JsonObject:
    return {name: getattr(column, name) for name in ("name", "type", "format", "description", "priority")}


def _row_object(obj: JsonObject, include: str) -> JsonObject:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": obj}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    return {"object": partial}


def _cells(
    resource: ServedResource, columns: tuple[TableColumn, ...], obj: JsonObject, now: datetime
) -> list[Any]:
    builtin = BUILTIN.get((resource.group, resource.plural))
    if builtin is not None and not resource.is_custom:
        return [cell(obj, now) for cell in builtin[1]]
    cells: list[Any] = [obj["metadata"].get("name", "")]
    return cells + [_custom_cell(obj, column, now) for column in columns[1:]]


def _custom_cell(obj: JsonObject, column: TableColumn, now: datetime) -> Any:
    values = [value for value in find_path(obj, column.path) if value is not None]
    if not values:
        return None
    value = values[0]
    if column.type == "date":
        return age(parse_time(value), now) if isinstance(value, str) and is_time(value) else "<invalid>"
    if column.type in ("integer", "number", "boolean"):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)  # of several values a server prints the first


_STEP = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\]|\\.)+)          # .name, dots escaped
      | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]  # ['key'] or ['one','other']
      | \[\?\(@\.(?P<field>[^=!\s]+)\s*==\s*(?P<q2>['"])(?P<value>.*?)(?P=q2)\)\]  # [?(@.type=="Ready")]
      | \[(?P<index>\*|\d+)\]                     # [0] or [*]
    """,
    re.VERBOSE,
)


_BETWEEN_KEYS = re.compile(r"""['"]\s*,\s*['"]""")


def find_path(obj: Any, path: str) -> list[Any]:
    """Return the values at a JSON path, in the subset that printer columns use."""
    values = [obj]
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return []
        values = [found for value in values for found in _step(value, step)]
        at = step.end()
    return values


def _step(value: Any, step: re.Match[str]) -> list[Any]:
    if step["name"] or step["key"]:
        names = [step["name"].replace("\\", "")] if step["name"] else re.split(_BETWEEN_KEYS, step["key"])
        return [value[name] for name in names if isinstance(value, dict) and name in value]
    if not isinstance(value, list):
        return []
    if step["field"]:
        return [item for item in value if find_path(item, "." + step["field"]) == [step["value"]]]
    if step["index"] == "*":
        return list(value)
    index = int(step["index"])
    return [value[index]] if index < len(value) else []
