"""A request to the API, whatever carried it, and its response."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from trimtab.model.field_errors import FieldError, FieldPath, too_long
from trimtab.model.status import StatusError, bad_request, invalid
from trimtab_lab.apiserver.errors import forbidden_field, invalid_value, unsupported_value
from trimtab_lab.kinds.registry import ServedResource
from trimtab_lab.storage.codec import JsonObject, encode

#: Bytes of a body, as kube-apiserver's default limit.
MAX_BODY = 3 * 1024 * 1024
#: Characters of a field manager's name.
MAX_MANAGER = 128
_MOST_DIGITS = 20
_WHOLE = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_OPTIONS_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


@dataclass(frozen=True)
class RequestUser:
    """The authenticated user of a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_master(self) -> bool:
        """Return whether authorization allows this user everything."""
        return "system:masters" in self.groups


ANONYMOUS = RequestUser("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True)
class RequestInfo:
    """What the path of a request names: a resource, an object, a subresource, or none of these."""

    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    is_resource: bool = False
    #: The whole path if it names no resource, else what follows the subresource.
    rest: tuple[str, ...] = ()


@dataclass
class ApiRequest:
    """A request to the API."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""
    user: RequestUser = ANONYMOUS
    #: Sentences for the client's Warning headers, collected while the request is handled.
    warnings: list[str] = field(default_factory=list)

    def option(self, name: str, default: str = "") -> str:
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """Return a boolean query option, parsed as Go does."""
        text = self.option(name)
        if text in ("", "0", "f", "F", "false", "False", "FALSE"):
            return False
        if text in ("1", "t", "T", "true", "True", "TRUE"):
            return True
        raise bad_request(f'invalid value "{text}" for query option {name}; use true or false')

    def number(self, name: str) -> int | None:
        """Return a whole-number query option."""
        text = self.option(name)
        if not text:
            return None
        # Python would take other scripts, blanks and underscores too.
        if not _WHOLE.match(text):
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        if len(text) > _MOST_DIGITS or not -(2**63) <= int(text) < 2**63:
            raise bad_request(f'strconv.ParseInt: parsing "{text[:_MOST_DIGITS]}": value out of range')
        return int(text)

    def check_options(self) -> None:
        """Reject a write with invalid options, before its body is decoded."""
        _ = self.is_dry_run
        manager = self.option("fieldManager")
        if len(manager) > MAX_MANAGER:
            raise self._invalid_option(too_long(FieldPath("fieldManager"), MAX_MANAGER))
        if not manager.isprintable():
            detail = "should only contain printable characters"
            raise self._invalid_option(invalid_value("fieldManager", manager, detail))
        if self.method == "PATCH" and self.option("force") and "apply-patch" not in self.content_type:
            raise self._invalid_option(forbidden_field("force", "may not be specified for non-apply patch"))

    def _invalid_option(self, cause: FieldError) -> StatusError:
        return invalid(_OPTIONS_KINDS.get(self.method, "DeleteOptions"), "meta.k8s.io", "", [cause])

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def media_type(self) -> str:
        """Return the media type of the body, without its parameters."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")

    @property
    def field_manager(self) -> str:
        """Return the manager that owns the fields which this request sets."""
        named = self.option("fieldManager")
        return named or self.headers.get("user-agent", "").partition("/")[0] or "unknown"

    @property
    def is_dry_run(self) -> bool:
        """Return whether the request must not be stored."""
        values = self.query.get("dryRun", [])
        if any(value != "All" for value in values):
            raise self._invalid_option(unsupported_value("dryRun", values, ("All",)))
        return bool(values)


@dataclass
class ResourceRequest(ApiRequest):
    """A request for a served resource, as handlers and admission plugins get it."""

    resource: ServedResource = field(kw_only=True)
    info: RequestInfo = field(kw_only=True)

    @property
    def key(self) -> str:
        """Return the storage key of the object that the path names."""
        return f"{self.info.namespace}/{self.info.name}" if self.resource.is_namespaced else self.info.name

    @property
    def api_version(self) -> str:
        """Return the `apiVersion` of objects in the request's version."""
        return self.resource.api_version(self.info.version)

    def to_request_version(self, obj: JsonObject) -> JsonObject:
        """Convert a stored object to the request's version."""
        resource, version = self.resource, self.info.version
        return obj if resource.stores(version) else resource.strategy.convert(obj, resource.group, version)

    def to_storage_version(self, obj: JsonObject) -> JsonObject:
        """Convert an object of the request to the version that is stored."""
        resource = self.resource
        if resource.stores(self.info.version):
            return obj
        return resource.strategy.convert(obj, resource.storage_group, resource.storage_version)


@dataclass
class ApiResponse:
    """A response: a whole body, or a stream of chunks."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, obj: JsonObject | bytes, status: int = 200) -> "ApiResponse":
        return cls(status, obj if isinstance(obj, bytes) else encode(obj))

    @classmethod
    def failure(cls, problem: StatusError) -> "ApiResponse":
        """Return the response of a rejected request."""
        response = cls.of(problem.status(), problem.code)
        if problem.retry_after is not None:
            response.headers["Retry-After"] = str(problem.retry_after)
        return response

    @classmethod
    def text(cls, text: str, status: int = 200) -> "ApiResponse":
        return cls(status, text.encode(), "text/plain; charset=utf-8")


def page_not_found() -> ApiResponse:
    """Return the response for a path that names nothing."""
    return ApiResponse.text("404 page not found\n", 404)


def parse_query(text: str) -> dict[str, list[str]]:
    query: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=200)
    except ValueError as problem:
        raise bad_request(f"the query cannot be read: {problem}") from problem
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    return query


def parse_path(path: str) -> RequestInfo:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    prefix = {"api": 2, "apis": 3}.get(parts[0], 0)
    if not prefix or len(parts) < prefix:
        return RequestInfo(rest=tuple(parts))
    group, version, rest = "" if prefix == 2 else parts[1], parts[prefix - 1], parts[prefix:]
    if not rest:
        return RequestInfo(group, version, rest=tuple(parts))
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]  # a namespace object is authorized inside itself
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    name, subresource = (*rest[1:3], "", "")[:2]
    return RequestInfo(group, version, namespace, rest[0], name, subresource, True, tuple(rest[3:]))


def verb_of(request: ApiRequest, info: RequestInfo) -> str:
    if request.method in ("GET", "HEAD"):
        if info.name:
            return "get"
        return "watch" if request.flag("watch") else "list"
    if request.method == "DELETE":
        return "delete" if info.name else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())
