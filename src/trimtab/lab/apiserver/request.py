"""A request as the lab sees it, whatever carried it: what it asks for, and what the answer is made of."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from trimtab.lab.apiserver.errors import (
    StatusError,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
    unsupported_value,
)
from trimtab.lab.storage.codec import JsonObject, encode
from trimtab.model.field_errors import FieldError, FieldPath, too_long

#: Bytes of a body, as kube-apiserver's default limit.
MAX_BODY = 3 * 1024 * 1024
#: Characters of the name under which a client owns fields.
MAX_MANAGER = 128
_MOST_DIGITS = 20
_WHOLE = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)


@dataclass(frozen=True)
class RequestUser:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_master(self) -> bool:
        """Tell whether every check is passed."""
        return "system:masters" in self.groups


ANONYMOUS = RequestUser("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True)
class RequestPath:
    """What a path names: a resource, an object, a part of it, or none of these."""

    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    is_resource: bool = False
    rest: tuple[str, ...] = ()


@dataclass
class ApiRequest:
    """One call to the API."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""
    user: RequestUser = ANONYMOUS
    #: Sentences for the client's Warning headers, collected while the request is handled.
    warnings: list[str] = field(default_factory=list)

    def option(self, name: str, default: str = "") -> str:
        """Return a query option."""
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """Return a boolean query option, read as Go reads them."""
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
        """Refuse a write whose options cannot be meant, before its body is looked at."""
        _ = self.is_dry_run
        manager = self.option("fieldManager")
        if len(manager) > MAX_MANAGER:
            raise self._wrong_option(too_long(FieldPath("fieldManager"), MAX_MANAGER))
        if not manager.isprintable():
            detail = "should only contain printable characters"
            raise self._wrong_option(invalid_value("fieldManager", manager, detail))
        if self.method == "PATCH" and self.option("force") and "apply-patch" not in self.content_type:
            raise self._wrong_option(forbidden_field("force", "may not be specified for non-apply patch"))

    def _wrong_option(self, cause: FieldError) -> StatusError:
        kinds = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
        return invalid(kinds.get(self.method, "DeleteOptions"), "meta.k8s.io", "", [cause])

    @property
    def content_type(self) -> str:
        """Return the media type of the body."""
        return self.headers.get("content-type", "")

    @property
    def accept(self) -> str:
        """Return what the client wants to get."""
        return self.headers.get("accept", "")

    @property
    def field_manager(self) -> str:
        """Return who owns the fields that this request sets."""
        named = self.option("fieldManager")
        return named or self.headers.get("user-agent", "").partition("/")[0] or "unknown"

    @property
    def is_dry_run(self) -> bool:
        """Tell whether nothing may be stored."""
        asked = self.query.get("dryRun", [])
        if any(one != "All" for one in asked):
            raise self._wrong_option(unsupported_value("dryRun", asked, ("All",)))
        return bool(asked)


@dataclass
class ApiResponse:
    """One answer: a whole body, or a stream of chunks."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, obj: JsonObject | bytes, status: int = 200) -> "ApiResponse":
        """Answer with one JSON object."""
        return cls(status, obj if isinstance(obj, bytes) else encode(obj))

    @classmethod
    def failure(cls, problem: StatusError) -> "ApiResponse":
        """Answer with a refusal."""
        response = cls.of(problem.status(), problem.code)
        if problem.retry_after is not None:
            response.headers["Retry-After"] = str(problem.retry_after)
        return response

    @classmethod
    def text(cls, text: str, status: int = 200) -> "ApiResponse":
        """Answer with plain text."""
        return cls(status, text.encode(), "text/plain; charset=utf-8")


def parse_query(text: str) -> dict[str, list[str]]:
    """Parse a query string."""
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=200):
        found.setdefault(name, []).append(value)
    return found


def parse_path(path: str) -> RequestPath:
    """Tell what a path names."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestPath(rest=tuple(parts))
    if not rest:
        return RequestPath(group, version, rest=tuple(parts))
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]  # the namespace object itself: authorised inside itself
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    return RequestPath(group, version, namespace, rest[0], name, subresource, True, tuple(rest[3:]))


def verb_of(request: ApiRequest, target: RequestPath) -> str:
    """Return the API verb of a request."""
    method = request.method
    if method in ("GET", "HEAD"):
        if target.name:
            return "get"
        return "watch" if request.flag("watch") else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
