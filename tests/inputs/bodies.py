"""Bodies that are no object, or not the one that the path asks for."""

import json
from collections.abc import Iterator
from typing import Any

from tests.inputs.hpas import SPEC, hpa
from tests.inputs.input import (
    AT_PATH,
    DRY_RUN,
    EVERYWHERE,
    GONE,
    HPAS,
    JSON,
    LAB_ONLY,
    OURS,
    SERVERS,
    YAML,
    Door,
    Input,
    Refusal,
    Sent,
    created,
    value_at,
)  # fmt: skip

STRICT = (*DRY_RUN, ("fieldValidation", "Strict"))
GOOD = hpa(SPEC)


def _body(
    name: str, body: bytes, refusal: Refusal, media: str = JSON, doors: frozenset[Door] = OURS
) -> Input:
    return Input(f"body: {name}", Sent("POST", HPAS, body, media, DRY_RUN), refusal, doors)


def _broken() -> Iterator[Input]:
    yield _body("cut off", json.dumps(GOOD).encode()[:-40], Refusal("", why="truncated|unexpected end"))
    yield _body("half a string", b'{"kind": "Horizo', Refusal("", why="truncated|unexpected end"))
    yield _body(
        "a comma too many",
        b'{"kind": "HorizontalPodAutoscaler",}',
        Refusal("", why="trailing comma.*byte"),
        doors=LAB_ONLY,
    )
    yield _body("two values", b"{} {}", Refusal("", why="trailing characters.*byte"), doors=LAB_ONLY)
    yield _body("no text", b"\xff\xfe\x00", Refusal("", why="invalid character|not UTF-8"))
    yield _body(
        "NaN",
        json.dumps(GOOD).replace("5,", "NaN,", 1).encode(),
        Refusal("", why="invalid character.*byte"),
        doors=LAB_ONLY,
    )
    yield _body(
        "a number of 5,000 digits",
        json.dumps(GOOD).replace("5,", "9" * 5000 + ",", 1).encode(),
        Refusal("", why="out of range|more than 1000 digits"),
    )
    yield _body("nothing", b"", Refusal("", why="no body|no documents"))
    yield _body("only blanks", b"   \n", Refusal("", why="truncated|no documents"))
    yield _body("null", b"null", Refusal("", why="not null|no documents"))
    yield _body("a list", b"[]", Refusal("", why="a list"))
    yield _body("a string", b'"hello"', Refusal("", why="text"))
    yield _body("100,000 brackets", b"[" * 100_000, Refusal("", why="deeper than 100 levels"))
    deep = b'{"spec":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001
    yield _body("20,000 objects in each other", deep, Refusal("", why="deeper than 100 levels"))
    yield _body(
        "4 MiB", b'{"kind":"' + b"x" * (4 << 20) + b'"}', Refusal("", why="limit is 3145728"), doors=LAB_ONLY
    )
    yield _body(
        "half a surrogate pair as a kind", b'{"kind":"\\ud800"}', Refusal("", why="truncated|invalid Unicode")
    )


def _yaml() -> Iterator[Input]:
    yield _body("YAML with a tab", b"kind:\n\t- x", Refusal("", why="cannot start any token"), YAML)
    yield _body("YAML of an open bracket", b"kind: [1, 2", Refusal("", why="flow sequence"), YAML)
    yield _body("YAML with an unknown alias", b"kind: *nobody", Refusal("", why="alias.*nobody"), YAML)
    yield _body(
        "YAML that would run code",
        b"!!python/object/apply:os.system ['true']",
        Refusal("", why="tag.*os.system"),
        YAML,
    )
    bomb = b"a: &a [x, x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b", ".join([b"*%c" % (97 + i)] * 9)) for i in range(9)
    )
    yield _body("a bomb of YAML aliases", bomb, Refusal("", why="more than \\d+ values"), YAML)


def _other_types() -> Iterator[Input]:
    def other(name: str, path: str, value: Any, doors: frozenset[Door] = LAB_ONLY) -> Input:
        body = {**GOOD, path: value} if value is not GONE else {k: v for k, v in GOOD.items() if k != path}
        return Input(
            f"body: {name}", created(HPAS, body), Refusal("", value, "match|Unsupported|must be text"), doors
        )

    yield other("another kind", "kind", "Deployment")
    yield other("another version", "apiVersion", "autoscaling.trimtab.dev/v1", OURS)
    yield other("another group", "apiVersion", "apps/v1")
    yield other("a kind that is a number", "kind", 7, OURS)
    yield Input(
        "body: another format",
        Sent("POST", HPAS, b"<x/>", "application/xml"),
        Refusal("", why="unknown format.*accepted"),
        SERVERS,
    )


def _metadata() -> Iterator[Input]:
    def meta(
        title: str, path: str, shown: Any = AT_PATH, doors: frozenset[Door] = EVERYWHERE, /, **metadata: Any
    ) -> Input:
        body = GOOD | {"metadata": {"name": "web"} | metadata}
        value = value_at(body, path) if shown is AT_PATH else shown
        return Input(f"metadata: {title}", created(HPAS, body), Refusal(path, value), doors)

    for bad in ("", "Web", "a b", "-a", "x" * 254, "a/b"):
        yield meta(f"a name of {bad[:9]!r}", "metadata.name", name=bad)
    yield meta("a name that is a number", "name", 7, name=7)
    yield meta("a label's key with a space", "metadata.labels", "a b", labels={"a b": "c"})
    yield meta("a label of 64 characters", "metadata.labels", "x" * 64, labels={"a": "x" * 64})
    yield meta("a label that is a number", "labels", 1, labels={"a": 1})
    yield meta("annotations of 300 KiB", "metadata.annotations", annotations={"a": "x" * 300_000})
    yield meta("a finalizer without a name", "metadata.finalizers", "a b", finalizers=["a b"])
    yield meta(
        "an owner without a uid",
        "metadata.ownerReferences",
        "",
        ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "x"}],
    )
    yield meta("another namespace", "namespace", GONE, SERVERS, namespace="elsewhere")


def _strict() -> Iterator[Input]:
    def strict(name: str, body: str, path: str) -> Input:
        return Input(
            f"strict: {name}", Sent("POST", HPAS, body.encode(), query=STRICT), Refusal(path), SERVERS
        )

    unknown = json.dumps(hpa(SPEC | {"maxReplica": 7}))
    yield strict("an unknown field of the spec", unknown, "spec.maxReplica")
    metric = SPEC["metrics"][0] | {"weight": 1}
    yield strict(
        "an unknown field of a metric",
        json.dumps(hpa(SPEC | {"metrics": [metric]})),
        "spec.metrics[0].weight",
    )
    yield strict("an unknown field of the object", json.dumps(GOOD | {"colour": 1}), "colour")
    twice = json.dumps(GOOD).replace('"maxReplicas": 5', '"maxReplicas": 5, "maxReplicas": 6')
    yield strict("a field given twice", twice, "spec.maxReplicas")


BAD = (*_broken(), *_yaml(), *_other_types(), *_metadata(), *_strict())
