"""Parses a request's path and query into a metric query, or rejects it.

The path is split before it is decoded, and a part that still contains a slash, a percent sign or dots is rejected. So no
spelling of a path reads another namespace than the one that was authorized (S14).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote_to_bytes

from trimtab.adapter.api.requests import (
    ANY,
    CUSTOM_GROUP,
    CUSTOM_VERSIONS,
    EXTERNAL_GROUP,
    EXTERNAL_VERSIONS,
    NAMESPACES,
    CustomMetricQuery,
    ExternalMetricQuery,
    MetricQuery,
)
from trimtab.cluster.access_reviews import ResourceAttributes
from trimtab.model.field_errors import quote
from trimtab.model.labels.selector import EVERYTHING, Selector, SelectorError
from trimtab.model.status import StatusError

MAX_REQUIREMENTS = 100
"""Requirements of one selector. kube-apiserver has no limit, and 10,000 of them take it seconds."""

MAX_NAME = 253
_MAX_SHOWN = 128
_MAX_PARAMETERS = 20
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z", re.ASCII)
_RESOURCE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Route:
    """A metric query, the API version of the response, and the attributes to authorize."""

    query: MetricQuery
    version: str
    attributes: ResourceAttributes


def split_path(raw_path: bytes) -> tuple[str, ...]:
    """Return the decoded parts of a path. Raise a StatusError for parts that could escape it."""
    parts = [_decode(part) for part in raw_path.split(b"/")[1:]]
    if parts and parts[-1] == "":
        parts.pop()
    for part in parts:
        if problem := path_part_problem(part):
            raise StatusError(422, f"{quote(_shorten(part, MAX_NAME))} cannot be part of a path: {problem}")
    return tuple(parts)


def path_part_problem(part: str) -> str:
    """Return why a decoded text cannot be a part of a path, or an empty text."""
    if part in {"", ".", ".."} or "/" in part or "%" in part or "\\" in part:
        return "may not be empty, '.', '..' or contain '/', '%' or '\\'"
    if len(part) > MAX_NAME or not part.isprintable():
        return f"has {len(part)} characters, of which {MAX_NAME} at most are allowed, or is not printable"
    return ""


def is_metrics_path(parts: Sequence[str]) -> bool:
    """Return whether the path is below a served version of one of the two groups."""
    return len(parts) > 3 and parts[0] == "apis" and parts[2] in versions_of(parts[1])


def versions_of(group: str) -> tuple[str, ...]:
    """Return the served versions of a group, the preferred version first."""
    return {CUSTOM_GROUP: CUSTOM_VERSIONS, EXTERNAL_GROUP: EXTERNAL_VERSIONS}.get(group, ())


def route(parts: Sequence[str], query_string: bytes) -> Route:
    """Parse a metrics path, which `is_metrics_path` must have accepted."""
    _, group, version, *rest = parts
    parameters = _parameters(query_string)
    query = _external(rest, parameters) if group == EXTERNAL_GROUP else _custom(rest, parameters)
    return Route(query, version, query.attributes(version))


def _external(rest: Sequence[str], parameters: dict[str, str]) -> MetricQuery:
    if len(rest) != 3 or rest[0] != NAMESPACES:
        raise StatusError(404, "the path of an external metric is namespaces/NAMESPACE/METRIC")
    return ExternalMetricQuery(_namespace(rest[1]), rest[2], _selector(parameters, "labelSelector"))


def _custom(rest: Sequence[str], parameters: dict[str, str]) -> MetricQuery:
    objects = _selector(parameters, "labelSelector")
    series = _selector(parameters, "metricLabelSelector")
    match rest:
        case ["namespaces", name, "metrics", metric]:
            name = name if name == ANY else _namespace(name)
            return CustomMetricQuery("", NAMESPACES, name, metric, objects, series)
        case ["namespaces", namespace, "namespaces", _, metric]:
            raise StatusError(
                422,
                f"a namespace cannot be an object of namespace {namespace!r}; the metric of a namespace is "
                f"namespaces/NAMESPACE/metrics/{_shorten(metric)}",
            )
        case ["namespaces", namespace, resource, name, metric]:
            return CustomMetricQuery(
                _namespace(namespace), _resource(resource), name, metric, objects, series
            )
        case [resource, name, metric] if resource != NAMESPACES:
            return CustomMetricQuery("", _resource(resource), name, metric, objects, series)
    raise StatusError(
        404,
        "the path of a custom metric is namespaces/NAMESPACE/RESOURCE/NAME/METRIC, namespaces/NAMESPACE/metrics/METRIC "
        "or RESOURCE/NAME/METRIC",
    )


def _shorten(text: str, limit: int = _MAX_SHOWN) -> str:
    return text if len(text) <= limit else f"{text[:_MAX_SHOWN]}…"


def _decode(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError as error:
        shown = part[:_MAX_SHOWN].decode("ascii", "backslashreplace")
        raise StatusError(422, f"{quote(shown)} cannot be part of a path: it is not UTF-8") from error


def _namespace(name: str) -> str:
    if not _LABEL.match(name):
        raise StatusError(422, f"{name!r} cannot be a namespace: must be a lower-case DNS label")
    return name


def _resource(name: str) -> str:
    if not _RESOURCE.match(name):
        raise StatusError(
            422, f"{name!r} cannot be a resource: must be PLURAL or PLURAL.GROUP, as statefulsets.apps"
        )
    return name


def _parameters(query_string: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MAX_PARAMETERS,
            errors="strict",
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise StatusError(400, f"the query cannot be read: {error}") from error
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise StatusError(400, "a query parameter is given twice; which one is meant cannot be told")
    return parameters


def _selector(parameters: dict[str, str], name: str) -> Selector:
    text = parameters.get(name, "")
    if not text:
        return EVERYTHING
    try:
        selector = Selector.parse(text)
    except SelectorError as error:
        raise StatusError(400, f"{name} {quote(_shorten(text))}: {error}") from error
    count = len(selector.requirements)
    if count > MAX_REQUIREMENTS:
        raise StatusError(
            400, f"{name}: has {count} requirements, more than {MAX_REQUIREMENTS}; ask for fewer at once"
        )
    return selector
