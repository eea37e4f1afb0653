"""Queries that cannot be answered: of the API server and of the metrics that our adapter serves.

Where the lab repeats a sentence of kube-apiserver's that names no option (`limit=ten`), tests/lab holds it to that.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.inputs.input import DRY_RUN, GONE, HPAS, LAB_ONLY, SERVERS, Door, Input, Refusal, Sent

MANY = ",".join(f"key{index}=x" for index in range(10_000))
SOME = ",".join(MANY.split(",")[:500])
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{ns}"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/{ns}"


def _list(name: str, path: str, value: Any, option: str, text: str, **more: str) -> Input:
    sent = Sent("GET", HPAS, query=((option, text), *more.items()))
    return Input(f"query: {name}", sent, Refusal(path, value), LAB_ONLY)


def _lists() -> Iterator[Input]:
    version, match = "resourceVersion", "resourceVersionMatch"
    future = _list("a version from the future", "resource version", 2**62, version, str(2**62))
    # The API's own answer: it may be that this server has not heard of that version yet.
    yield replace(future, refusal=Refusal("resource version", 2**62, codes=range(504, 505)))
    for title, text in (("that is none", "newest"), ("below zero", "-1"), ("in another script", "١٠")):
        yield _list(f"a version {title}", version, text, version, text)
    yield _list("a version of 400 digits", version, "9" * 20, version, "9" * 400)
    yield _list("a way to match without a version", match, "Exact", match, "Exact")
    yield _list("an unknown way to match", match, "Roughly", match, "Roughly", resourceVersion="1")
    yield _list("a limit below zero", "limit", GONE, "limit", "-1")
    yield _list("a place to go on that is none", "continue", GONE, "continue", "!!")
    yield _list("a label selector with a hole", "requirement", GONE, "labelSelector", "a in (")
    yield _list("a label selector without an operator", "requirement", "'b'", "labelSelector", "a b c")
    yield _list("a label selector of 10,000 requirements", "label selector", MANY, "labelSelector", MANY)
    unknown = "spec.maxReplicas"
    yield _list("an unknown field", "field selector", unknown, "fieldSelector", f"{unknown}=5")
    yield _list(
        "a field selector that is none", "selector", "metadata.name", "fieldSelector", "metadata.name"
    )
    yield _list("a watch that is perhaps", "watch", "perhaps", "watch", "perhaps")
    yield _list("a watch from a version that is none", version, "x", version, "x", watch="1")


def _writes() -> Iterator[Input]:
    def write(name: str, option: str, value: str) -> Input:
        query = (*(DRY_RUN if option != "dryRun" else ()), (option, value))
        return Input(
            f"query: {name}", Sent("POST", HPAS, b"{}", query=query), Refusal(option, value), LAB_ONLY
        )

    yield write("a dry run of some", "dryRun", "Some")
    yield write("an unknown strictness", "fieldValidation", "Pedantic")
    yield write("a manager of 129 characters", "fieldManager", "x" * 129)
    yield write("a manager with a newline", "fieldManager", "a\nb")


def _paths() -> Iterator[Input]:
    def path(name: str, method: str, path: str, what: str, value: str) -> Input:
        return Input(f"path: {name}", Sent(method, path), Refusal(what, value, "not found"), LAB_ONLY)

    yield path("an object that is not there", "GET", f"{HPAS}/nobody", "horizontalpodautoscalers", "nobody")
    scale = "/apis/apps/v1/namespaces/{ns}/deployments/nobody/scale"
    yield path("a scale of what is not there", "GET", scale, "deployments", "nobody")


def _metric(name: str, path: str, refusal: Refusal, doors: frozenset[Door] = SERVERS) -> Input:
    return Input(f"metric: {name}", Sent("GET", path), refusal, doors)


def _selected(path: str, option: str, selector: str, shown: str) -> Input:
    sent = Sent("GET", path, query=((option, selector),))
    return Input(
        f"metric: {option} of {path.split('/')[2]}, {shown}", sent, Refusal(option, selector), SERVERS
    )


def _selectors() -> Iterator[Input]:
    for option in ("labelSelector", "metricLabelSelector"):
        for selector in ("a in (", "=x", "a==b==c", "a notin b", "-a", f"a={'x' * 64}"):
            yield _selected(f"{CUSTOM}/pods/*/rate", option, selector, selector[:9])
        yield _selected(f"{CUSTOM}/pods/*/rate", option, SOME, "500 requirements")
    for selector in ("a in (", "a in (b", "a b"):
        yield _selected(f"{EXTERNAL}/queue", "labelSelector", selector, selector)


def _names() -> Iterator[Input]:
    names = {"%2e%2e": "..", "..%2fother": "../other", "a%2fb": "a/b", "a%25b": "a%b", "a%01b": "a\x01b"}
    for name, shown in (names | {"%FF%FE": "%FF%FE"}).items():
        # kube-apiserver writes the slash out before it passes the path on.
        doors = LAB_ONLY if "%2f" in name else SERVERS
        refusal = Refusal("path", shown, "cannot be part")
        yield _metric(f"external, called {name}", f"{EXTERNAL}/{name}", refusal, doors)
    long = "x" * 1000
    yield _metric(
        "external, of 1,000 characters", f"{EXTERNAL}/{long}", Refusal("path", long, "1000 characters")
    )


def _others() -> Iterator[Input]:
    nowhere = "/apis/external.metrics.k8s.io/v1beta1/namespaces/A_B/queue"
    yield _metric("of a namespace that can be none", nowhere, Refusal("namespace", "A_B", "DNS label"))
    resource = Refusal("resource", "Pods!", "PLURAL")
    yield _metric("of a resource that can be none", f"{CUSTOM}/Pods!/x/rate", resource)
    yield _metric("with a part too many", f"{CUSTOM}/pods/x/rate/more", Refusal("path", GONE, "NAME/METRIC"))
    yield _metric("of nothing", f"{EXTERNAL}/nothing", Refusal("metric", "nothing", "could not find"))
    nobody = Refusal("pods", "nobody", "could not find")
    yield _metric("of a pod that is not there", f"{CUSTOM}/pods/nobody/rate", nobody)
    written = Sent("POST", f"{EXTERNAL}/queue", b"{}")
    yield Input("metric: written", written, Refusal("POST", why="read only"), SERVERS)


BAD = (*_lists(), *_writes(), *_paths(), *_selectors(), *_names(), *_others())
