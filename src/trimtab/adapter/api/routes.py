"""From a request's path and query to a question, or to a refusal.

The path is split before it is decoded, and a part that still holds a slash, a percent sign or dots is refused, so that
no spelling of a path reaches another namespace than the one that was authorised (S14).
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
    CustomQuestion,
    ExternalQuestion,
    Question,
)
from trimtab.adapter.errors import BadRequest, Invalid, NotFound
from trimtab.cluster.access_reviews import ResourceAttributes
from trimtab.model.field_errors import quote
from trimtab.model.labels.selector import EVERYTHING, Selector, SelectorError

MAX_REQUIREMENTS = 100
"""Requirements of one selector; kube-apiserver has no limit, and 10,000 of them cost it seconds."""

MAX_NAME = 253
_MAX_SHOWN = 128
_MAX_PARAMETERS = 20
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z", re.ASCII)
_RESOURCE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z", re.ASCII)
_NAMESPACE_METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class Route:
    """A question, the API version to answer in, and what to ask the authoriser."""

    question: Question
    version: str
    attributes: ResourceAttributes


def split_path(raw_path: bytes) -> tuple[str, ...]:
    """Return the decoded parts of a path; refuse parts that could climb or hide another path."""
    parts = [_decoded(part) for part in raw_path.split(b"/")[1:]]
    if parts and parts[-1] == "":
        parts.pop()
    for part in parts:
        if part in {"", ".", ".."} or "/" in part or "%" in part or "\\" in part:
            shown = part if len(part) <= _MAX_SHOWN else f"{part[:_MAX_SHOWN]}…"
            raise Invalid(
                f"{shown!r} cannot be part of a path: may not be empty, '.', '..' or contain '/', '%' or '\\'"
            )
        if len(part) > MAX_NAME or not part.isprintable():
            shown = part if len(part) <= MAX_NAME else f"{part[:_MAX_SHOWN]}…"
            problem = (
                f"has {len(part)} characters, of which {MAX_NAME} at most are allowed, or is not printable"
            )
            raise Invalid(f"{quote(shown)} cannot be part of a path: {problem}")
    return tuple(parts)


def is_metrics_path(parts: Sequence[str]) -> bool:
    """Return whether the parts lead into one of the two groups, below a version that is served."""
    return len(parts) > 3 and parts[0] == "apis" and parts[2] in versions_of(parts[1])


def versions_of(group: str) -> tuple[str, ...]:
    """Return the versions of a group that are served, the preferred one first."""
    return {CUSTOM_GROUP: CUSTOM_VERSIONS, EXTERNAL_GROUP: EXTERNAL_VERSIONS}.get(group, ())


def route(parts: Sequence[str], query: bytes) -> Route:
    """Return what a metrics path asks; only for paths that `is_metrics_path` accepts."""
    _, group, version, *rest = parts
    parameters = _parameters(query)
    if group == EXTERNAL_GROUP:
        question, attributes = _external(rest, parameters)
    else:
        question, attributes = _custom(rest, parameters)
    namespace, resource, name, subresource = (*attributes, "", "")[:4]
    # kube-apiserver treats a path that ends in a resource as a list, and roles are written accordingly.
    verb = "get" if name else "list"
    reviewed = ResourceAttributes(verb, group, resource, namespace, version, name, subresource)
    return Route(question, version, reviewed)


def _external(rest: Sequence[str], parameters: dict[str, str]) -> tuple[Question, tuple[str, ...]]:
    if len(rest) != 3 or rest[0] != NAMESPACES:
        raise NotFound("the path of an external metric is namespaces/NAMESPACE/METRIC")
    namespace, metric = _namespace(rest[1]), rest[2]
    return ExternalQuestion(namespace, metric, _selector(parameters, "labelSelector")), (namespace, metric)


def _custom(rest: Sequence[str], parameters: dict[str, str]) -> tuple[Question, tuple[str, ...]]:
    objects = _selector(parameters, "labelSelector")
    series = _selector(parameters, "metricLabelSelector")
    match rest:
        case ["namespaces", name, "metrics", metric]:
            # The namespace itself is the object; it is authorised as what lies in it.
            name = name if name == ANY else _namespace(name)
            question = CustomQuestion("", NAMESPACES, name, metric, objects, series)
            return question, (name, _NAMESPACE_METRICS, metric)
        case ["namespaces", namespace, resource, name, metric]:
            namespace, resource = _namespace(namespace), _resource(resource)
            question = CustomQuestion(namespace, resource, name, metric, objects, series)
            return question, (namespace, resource, name, metric)
        case [resource, name, metric] if resource != NAMESPACES:
            question = CustomQuestion("", _resource(resource), name, metric, objects, series)
            return question, ("", resource, name, metric)
    raise NotFound(
        "the path of a custom metric is namespaces/NAMESPACE/RESOURCE/NAME/METRIC, namespaces/NAMESPACE/metrics/METRIC "
        "or RESOURCE/NAME/METRIC"
    )


def _decoded(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError as error:
        shown = part[:_MAX_SHOWN].decode("ascii", "backslashreplace")
        raise Invalid(f"{quote(shown)} cannot be part of a path: it is not UTF-8") from error


def _namespace(name: str) -> str:
    if not _LABEL.match(name):
        raise Invalid(f"{name!r} cannot be a namespace: must be a lower-case DNS label")
    return name


def _resource(name: str) -> str:
    if not _RESOURCE.match(name):
        raise Invalid(f"{name!r} cannot be a resource: must be PLURAL or PLURAL.GROUP, as statefulsets.apps")
    return name


def _parameters(query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_PARAMETERS, errors="strict"
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise BadRequest(f"the query cannot be read: {error}") from error
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise BadRequest("a query parameter is given twice; which one is meant cannot be told")
    return parameters


def _selector(parameters: dict[str, str], name: str) -> Selector:
    text = parameters.get(name, "")
    if not text:
        return EVERYTHING
    try:
        selector = Selector.parse(text)
    except SelectorError as error:
        shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
        raise BadRequest(f"{name} {quote(shown)}: {error}") from error
    count = len(selector.requirements)
    if count > MAX_REQUIREMENTS:
        raise BadRequest(
            f"{name}: has {count} requirements, more than {MAX_REQUIREMENTS}; ask for fewer at once"
        )
    return selector
