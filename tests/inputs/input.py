"""One input: what is sent, where to, and what the answer has to be."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

JSON = "application/json"
YAML = "application/yaml"
GONE = object()
"""The value of a field that is missing, or of several that do not go together: there is nothing to repeat."""
AT_PATH = object()
"""The value is what the input has at the path."""


class Door(StrEnum):
    """Where an input is sent."""

    VALIDATE = "validate"
    LAB = "lab"
    REAL = "real"


EVERYWHERE = frozenset(Door)
SERVERS = frozenset({Door.LAB, Door.REAL})
LAB_ONLY = frozenset({Door.LAB})
OURS = frozenset({Door.VALIDATE, Door.LAB})
"""Where the words are ours: a body that kube-apiserver cannot read, it refuses in its own."""


@dataclass(frozen=True)
class Sent:
    """A request; `{ns}` in its path stands for the namespace that it is played in."""

    method: str
    path: str
    body: bytes = b""
    media: str = JSON
    query: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Refusal:
    """What a refusal has to say: where, what was there, and, as a pattern, why not."""

    path: str
    value: Any = GONE
    why: str = ""
    codes: range = range(400, 500)


@dataclass(frozen=True)
class Input:
    """Something that is sent; without a refusal it has to be taken."""

    name: str
    sent: Sent = field(repr=False)
    refusal: Refusal | None
    doors: frozenset[Door] = EVERYWHERE


HPAS = "/apis/autoscaling.trimtab.dev/v2/namespaces/{ns}/horizontalpodautoscalers"
VPAS = "/apis/autoscaling.trimtab.dev/v1/namespaces/{ns}/verticalpodautoscalers"
SCOPES = "/apis/autoscaling.trimtab.dev/v1/namespaces/{ns}/vpascopes"
NATIVE = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
DRY_RUN = (("dryRun", "All"),)


def created(path: str, body: Mapping[str, Any]) -> Sent:
    """Return the request that would create an object, and stores nothing whatever comes of it."""
    return Sent("POST", path, json.dumps(body).encode(), query=DRY_RUN)


def value_at(tree: Any, path: str) -> Any:
    """Return what stands at a path such as `spec.metrics[0].type`, or GONE."""
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(tree, list) and step.isdigit() and int(step) < len(tree):
            tree = tree[int(step)]
        elif isinstance(tree, dict) and step in tree:
            tree = tree[step]
        else:
            return GONE
    return tree
