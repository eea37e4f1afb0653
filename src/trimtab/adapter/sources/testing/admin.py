"""The HTTP port that sets values of the testing source, on loopback and with a token.

PUT    /custom/namespaces/NS/RESOURCE/NAME/METRIC?label=value    body: the value
PUT    /custom/RESOURCE/NAME/METRIC?label=value                  for objects without a namespace
PUT    /external/namespaces/NS/METRIC?label=value
DELETE the same paths                                            delete the series
GET    /values                                                   all series, in the form of the file
POST   /values                                                   set all series of the body
DELETE /values                                                   delete all series
"""

import hmac
import secrets
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl

from trimtab.adapter.api.app import AdapterResponse, error_response, reply
from trimtab.adapter.api.routes import split_path
from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.files import API_VERSION, convert, parse_document
from trimtab.adapter.sources.testing.source import TestingSource
from trimtab.adapter.sources.testing.values import (
    KIND,
    CustomValue,
    ExternalValue,
    MetricTable,
    MetricValueFile,
    Value,
    as_json,
)
from trimtab.model.json import wire
from trimtab.model.status import StatusError
from trimtab.serving.asgi import BodyTooLargeError, ClientGoneError, Message, Receive, Send, read_body

MAX_BODY = 3 * 1024 * 1024
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class AdminApp:
    """The ASGI application of the admin port."""

    def __init__(self, source: TestingSource, token: str) -> None:
        self._source = source
        self._token = token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            self._authorize(scope)
            body = await _body(receive)
            parts = split_path(scope["raw_path"])
            response = self._respond(scope["method"], parts, scope["query_string"], body)
        except StatusError as error:
            response = error_response(error)
        except ConfigurationError as error:
            response = error_response(StatusError(422, str(error)))
        await reply(scope, send, response, read_body=True)

    def _authorize(self, scope: Message) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "").rpartition(":")[0] or headers.get(b"host", "")
        if host not in _HOSTS:
            # DNS rebinding: a web page whose own name resolves to loopback sends that name.
            raise StatusError(421, f"this port answers to {', '.join(_HOSTS)} only")
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            token.strip().encode(), self._token.encode()
        ):
            raise StatusError(401, "the admin port needs its token: Authorization: Bearer TOKEN")

    def _respond(
        self, method: str, parts: Sequence[str], query_string: bytes, body: bytes
    ) -> AdapterResponse:
        if tuple(parts) == ("values",):
            return self._respond_all(method, body)
        if method not in {"PUT", "DELETE"}:
            raise StatusError(405, f"{method} is not served here; PUT sets a value, DELETE forgets it")
        value = _value(
            parts, query_string, body.decode("utf-8", "replace").strip() if method == "PUT" else "0"
        )
        if method == "PUT":
            self._source.table.put(value)
        elif not self._source.table.remove(value):
            raise StatusError(404, "there is no such series")
        return AdapterResponse(b"{}")

    def _respond_all(self, method: str, body: bytes) -> AdapterResponse:
        if method == "DELETE":
            self._source.table = MetricTable()
        elif method == "POST":
            data = parse_document(body.decode("utf-8", "replace"), "body")
            for key in ("apiVersion", "kind"):
                data.pop(key, None)
            self._source.table.put_all(convert(data, MetricValueFile, "body"))
        elif method != "GET":
            raise StatusError(405, f"{method} /values is not served; use GET, POST or DELETE")
        table = as_json(list(self._source.table.points()))
        return AdapterResponse(wire.encode({"apiVersion": API_VERSION, "kind": KIND, **table}))


def load_token(path: Path) -> str:
    """Return the token of a file. Create the file, readable by its owner only, if it is missing."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(token + "\n", encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error
    if len(token) < 16:
        raise ConfigurationError(f"{path}: the admin token must have 16 characters at least")
    return token


def _value(parts: Sequence[str], query_string: bytes, text: str) -> Value:
    labels = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))
    match list(parts):
        case ["custom", "namespaces", namespace, resource, name, metric]:
            return CustomValue(
                metric=metric, value=text, name=name, resource=resource, namespace=namespace, labels=labels
            )
        case ["custom", resource, name, metric]:
            return CustomValue(metric=metric, value=text, name=name, resource=resource, labels=labels)
        case ["external", "namespaces", namespace, metric]:
            return ExternalValue(metric=metric, value=text, namespace=namespace, labels=labels)
    raise StatusError(
        404, "paths are /values, /custom/[namespaces/NS/]RESOURCE/NAME/METRIC, /external/namespaces/NS/METRIC"
    )


async def _body(receive: Receive) -> bytes:
    try:
        return await read_body(receive, MAX_BODY)
    except ClientGoneError as error:
        raise StatusError(400, "the request was cut") from error
    except BodyTooLargeError as error:
        raise StatusError(413, str(error)) from error
