"""Matching selectors: one by one, and through the index, for 100,000 pods and 10,000 selectors."""

from collections.abc import Callable
from functools import partial

from bench import Rows, best_seconds
from trimtab.model.labels.index import SelectorIndex
from trimtab.model.labels.parser import parse_requirements
from trimtab.model.labels.selector import Selector

NAMESPACES = 100
SELECTORS = 10_000
PODS_PER_SELECTOR = 10


def run() -> Rows:
    return [*_matching(), *_indexing()]


def _row(what: str, seconds: float, count: int) -> dict[str, str]:
    return {"what": what, "us each": f"{seconds / count * 1e6:.2f}", "ms in all": f"{seconds * 1e3:.1f}"}


def _matching() -> Rows:
    labels = {"app": "web", "tier": "front", "pod-template-hash": "7f9c"}
    rows = []
    for text in ("app=web", "app=web,tier=front", "app in (web,api),!old"):
        matches = Selector.parse(text).matches
        seconds = best_seconds(partial(_repeat, matches, labels))
        rows.append(_row(f"match {text}", seconds, 20_000))
    texts = [f"app=web-{n},tier in (a,b)" for n in range(1_000)]
    cold = best_seconds(lambda: [parse_requirements(text) for text in texts])
    again = best_seconds(lambda: [Selector.parse(text) for text in texts])
    return [*rows, _row("parse app=web,tier in (a,b)", cold, 1_000), _row("parse it again", again, 1_000)]


def _repeat(matches: Callable[[dict[str, str]], bool], labels: dict[str, str]) -> None:
    for _ in range(20_000):
        matches(labels)


def _indexing() -> Rows:
    index: SelectorIndex[int, int] = SelectorIndex()
    selectors = {n: Selector.parse(f"app=app-{n}") for n in range(SELECTORS)}
    pods = {
        n * PODS_PER_SELECTOR + k: (
            f"ns-{n % NAMESPACES}",
            {"app": f"app-{n}", "pod-template-hash": f"{n:x}"},
        )
        for n in range(SELECTORS)
        for k in range(PODS_PER_SELECTOR)
    }

    def add_pods() -> None:
        for pod, (namespace, labels) in pods.items():
            index.set_pod(pod, namespace, labels)

    def add_selectors() -> None:
        for n, selector in selectors.items():
            index.set_selector(n, f"ns-{n % NAMESPACES}", selector)

    rows = [
        _row("index: add a pod", best_seconds(add_pods, rounds=1), len(pods)),
        _row("index: add a selector", best_seconds(add_selectors, rounds=1), SELECTORS),
        _row("index: same labels again", best_seconds(add_pods, rounds=3), len(pods)),
        _row(
            "index: pods of a selector",
            best_seconds(lambda: [index.pods_of(n) for n in selectors]),
            SELECTORS,
        ),
    ]
    first = best_seconds(lambda: [index.selectors_of(pod) for pod in pods], rounds=1)
    again = best_seconds(lambda: [index.selectors_of(pod) for pod in pods])
    return [
        *rows,
        _row("index: selectors of a pod, first time", first, len(pods)),
        _row("index: selectors of a pod, again", again, len(pods)),
    ]
