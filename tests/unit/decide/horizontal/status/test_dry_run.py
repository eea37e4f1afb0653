"""A dry run: what would be scaled becomes a sentence of the status, and nothing is written."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    NOW,
    average,
    behavior,
    condition,
    external,
    hpa,
    marked,
    observe,
    rules,
    series,
)
from trimtab.decide.horizontal import decide
from trimtab.decide.horizontal.status.conditions import as_dry_run
from trimtab.decide.horizontal.status.ignored_fields import must_not_scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.dry_run import MODE_ANNOTATION

FAST = behavior(rules(("Pods", 9, 15), window=0), rules(("Pods", 9, 15), window=0))


def seen(current, asked, annotations=None, **fields):
    autoscaler = hpa(external(average(100)), behavior=FAST, **fields)
    if annotations:
        metadata = msgspec.structs.replace(autoscaler.metadata, annotations=annotations)
        autoscaler = msgspec.structs.replace(autoscaler, metadata=metadata)
    return observe(autoscaler, current, series(asked * 100))


@pytest.mark.parametrize(("current", "asked"), [(2, 5), (5, 2)], ids=["up", "down"])
def test_a_dry_run_says_what_it_would_do_and_writes_nothing(current, asked):
    observation = seen(current, asked)
    decision = decide(observation, NOW)
    assert decision.scale_to == asked
    dry = as_dry_run(observation, decision)
    assert (dry.scale_to, dry.intent, dry.observed_desired) == (None, None, asked)
    able = condition(dry, "AbleToScale")
    assert (able.status, able.reason) == ("True", "DryRun")
    assert able.message.startswith(f"dry run: would scale from {current} to {asked}: ")
    assert dry.status.desired_replicas == asked
    assert dry.status_changed


def test_a_dry_run_that_would_do_nothing_is_the_decision():
    observation = seen(3, 3)
    decision = decide(observation, NOW)
    assert decision.scale_to is None
    assert as_dry_run(observation, decision) is decision


def test_a_dry_run_to_zero_leaves_no_mark():
    observation = seen(2, 0, low=0, status=marked("False"))
    decision = decide(observation, NOW)
    assert (decision.scale_to, decision.intent is not None) == (0, True)
    assert as_dry_run(observation, decision).intent is None


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param({}, False, id="no annotation"),
        pytest.param({MODE_ANNOTATION: "DryRun"}, True, id="a dry run"),
        pytest.param({MODE_ANNOTATION: "Scale"}, None, id="another mode"),
        pytest.param({MODE_ANNOTATION: "Guess"}, True, id="an unknown mode might be one"),
    ],
)
def test_an_annotation_holds_an_hpa(annotations, want):
    observation = seen(2, 5, annotations)
    found = must_not_scale(observation.hpa, FeatureGates())
    assert found is want or want is None


@pytest.mark.parametrize(
    ("asked", "words"), [(5, "dry run: would scale from 2 to 5"), (2, "nothing would be scaled now")]
)
def test_an_unknown_annotation_is_said_first(asked, words):
    observation = seen(2, asked, {MODE_ANNOTATION: "Guess"})
    dry = as_dry_run(observation, decide(observation, NOW))
    able = condition(dry, "AbleToScale")
    assert able.reason not in {"DryRun", "ReadyForNewScale"}
    assert "nothing is scaled until then" in able.message
    assert words in able.message
    assert dry.scale_to is None
