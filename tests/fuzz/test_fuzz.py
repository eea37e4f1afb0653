"""Every kept input and a few hundred mutants of them, and proof that a defect would be found."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz import engine
from tests.fuzz.targets import TARGETS
from trimtab.adapter.api.requests import CustomMetricQuery
from trimtab.cluster.http import messages
from trimtab.model.labels.requirement import Requirement
from trimtab.model.quantity import Quantity

RUNS = {"manifests": 60, "webhook": 40}
"""Mutants of the targets that take milliseconds each; the others get more."""
MANY = 250


def found(name: str, runs: int) -> list[str]:
    target = TARGETS[name]
    result = engine.fuzz(
        target.run, target.seeds(name), words=target.words, seed=20, goes_on=lambda done: done < runs
    )
    return [f"{finding.data!r}: {finding.error!r}" for finding in result.findings]


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_a_property(name):
    kept = len(TARGETS[name].seeds(name))
    assert found(name, kept + RUNS.get(name, MANY)) == []


def _lose_the_last_part(read: Callable[..., bytes]) -> Callable[..., bytes]:
    return lambda parser: read(parser)[:-1]


def _path_of_another_namespace(_query: CustomMetricQuery, version: str) -> str:
    return f"/apis/custom.metrics.k8s.io/{version}/namespaces/other/metrics/m"


PLANTED: list[Any] = [
    pytest.param(
        "http", messages.ResponseParser, "take_body",
        _lose_the_last_part(messages.ResponseParser.take_body), id="a body loses its last byte",
    ),
    pytest.param(
        "http", messages, "_NO_LIMIT", 1 << 62, id="control: nothing is planted",
    ),
    pytest.param(
        "selector", Requirement, "matches", lambda requirement, labels: requirement.key in labels,
        id="every operator means exists",
    ),
    pytest.param("quantity", Quantity, "__str__", lambda amount: f"{amount.value()}", id="fractions are not printed"),
    pytest.param("adapter", CustomMetricQuery, "path", _path_of_another_namespace, id="another namespace is read"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "where", "attribute", "defect"), PLANTED)
def test_a_planted_defect_is_found(monkeypatch, request, name, where, attribute, defect):
    monkeypatch.setattr(where, attribute, defect)
    is_control = request.node.callspec.id.startswith("control")
    assert bool(found(name, 100)) != is_control


def test_an_input_that_takes_too_long_is_found_without_a_clock(monkeypatch):
    monkeypatch.setattr(engine, "MAX_LINES", 300)
    assert any("TooManyLinesError" in finding for finding in found("selector", 200))


def test_the_same_seed_makes_the_same_inputs():
    corpus = [b"a=b,c in (d)", b"x"]
    made = [[engine.Mutator(7, [b","]).mutate(corpus) for _ in range(3)] for _ in range(2)]
    assert made[0] == made[1]
