"""Requests whose answers must be the same on the lab and on the real kube-apiserver.

A script is a list of steps, run in order in a namespace of its own; `{ns}` stands for that namespace. What differs by
nature (uids, versions, times, addresses) is replaced before two answers are compared.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Step:
    """One request."""

    method: str
    path: str
    body: Any = None
    query: str = ""
    media: str = JSON
    accept: str = JSON
    #: Parts of the answer that are known to differ, as dotted paths; each has a reason in docs/lab.md.
    ignored: tuple[str, ...] = ()
    #: Repeat until this condition of the answer is True; a definition takes a moment on a real server.
    wait: str = ""
    #: Seconds that a real server's controllers get before the request; the lab's are done at once.
    settle: float = 0
    #: Repeat until the answer has this status; a garbage collector that learns of new kinds pauses for minutes. The lab's is done at once.
    until: int = 0
    #: A field of the answer's metadata, or a dotted path in the answer, that later steps use as `{kept}`.
    keep: str = ""
    #: Whether the kept value is the bearer token of this request.
    has_kept_token: bool = False
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Script:
    """Steps that belong together."""

    name: str
    steps: tuple[Step, ...] = field(default_factory=tuple)


TIMES = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
AGES = re.compile(r"^\d+s$")
UIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
VARIABLE = {"description", "resourceVersion", "clusterIP", "continue", "nodePort", "uid"}


def plain(value: Any, namespace: str, name: str = "") -> Any:
    """Return an answer with everything replaced that differs from run to run."""
    if isinstance(value, dict):
        return {
            key: plain(child, namespace, key)
            for key, child in sorted(value.items())
            if key != "managedFields" and not (key == "creationTimestamp" and child is None)
        }
    if isinstance(value, list):
        return ["<address>"] if name == "clusterIPs" else [plain(child, namespace, name) for child in value]
    if isinstance(value, str):
        if name in VARIABLE and value != "None":
            return f"<{name}>"
        if name == "cells" and AGES.match(value):
            return "<age>"
        if TIMES.match(value):
            return "<time>"
        value = UIDS.sub("<uid>", value).replace(namespace, "{ns}")
    return value


def without(value: Any, paths: tuple[str, ...]) -> Any:
    """Leave out the parts that are known to differ."""
    for path in paths:
        *parents, last = path.split(".")
        at = value
        for name in parents:
            at = at.get(name, {}) if isinstance(at, dict) else {}
        if isinstance(at, dict):
            at.pop(last, None)
    return value


def encode_body(step: Step, namespace: str, kept: str = "") -> bytes:
    """Return the bytes to send."""
    if step.body is None:
        return b""
    text = step.body if isinstance(step.body, str) else json.dumps(step.body)
    return text.replace("{ns}", namespace).replace("{kept}", kept).encode()


@dataclass(frozen=True)
class Reply:
    """What a server sent back."""

    status: int
    body: bytes


Send = Callable[[Step, str, str], Awaitable[Reply]]
Pause = Callable[[float], Awaitable[None]]


async def play(script: Script, send: Send, pause: Pause, namespace: str) -> list[dict[str, Any]]:
    """Run a script in a new namespace and return its answers, made comparable."""
    await send(Step("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}), namespace, "")
    kept: Any = ""
    answers = []
    for step in script.steps:
        if step.settle:
            await pause(step.settle)
        reply = await send(step, namespace, kept)
        if step.wait:
            reply = await _until(step, send, pause, namespace)
        tries = 2000 if step.until else 0
        while reply.status != step.until and tries:
            await pause(0.1)
            reply, tries = await send(step, namespace, kept), tries - 1
        if step.keep:
            kept = json.loads(reply.body)
            for name in step.keep.split(".") if "." in step.keep else ("metadata", step.keep):
                kept = kept[name]
        body = without(plain(parse(reply.body), namespace), step.ignored)
        answers.append({"status": reply.status, "body": body})
    return answers


async def _until(step: Step, send: Send, pause: Pause, namespace: str) -> Reply:
    for _ in range(100):
        reply = await send(step, namespace, "")
        conditions = json.loads(reply.body).get("status", {}).get("conditions", [])
        if any(condition["type"] == step.wait and condition["status"] == "True" for condition in conditions):
            await pause(1)  # the new resource is served a moment after it is established
            return reply
        await pause(0.1)
    raise AssertionError(f"{step.path} never became {step.wait}")


def parse(body: bytes) -> Any:
    """Read an object, the lines of a watch, or plain text."""
    try:
        return json.loads(body)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in body.splitlines()]
    except ValueError:
        return body.decode()


def request_headers(step: Step, token: str, namespace: str, kept: str) -> dict[str, str]:
    """Return the headers of a step."""
    return {
        **{name: value.replace("{ns}", namespace) for name, value in step.headers},
        "Authorization": f"Bearer {kept if step.has_kept_token else token}",
        "Content-Type": step.media,
        "Accept": step.accept,
        "User-Agent": "suite/1",
    }
