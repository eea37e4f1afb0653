"""A recorded call of an estimator is made again, or its answer is repeated and that is said."""

import pytest

from trimtab.decide.vertical.cluster_state.estimator_state import EstimateRecord
from trimtab.decide.vertical.estimate_records import dumps, loads, replay_estimate
from trimtab.decide.vertical.recommend.plugin_estimates import LoadedEstimator
from trimtab.model.json.wire import WireError
from trimtab.plugins.estimator import Amounts, Estimate, EstimatorInput, UsageHistogram, UsageSample
from trimtab.plugins.guard import PluginFailure

NAME = "example.com/fixed"
SEEN = EstimatorInput(
    namespace="shop", name="web", container="main", now=1e9, memory={"days": [1]},
    histograms={"cpu": UsageHistogram(ends=(0.5, 1.0), weights=(1.0, 3.0))},
    samples=(UsageSample(1e9, "cpu", 0.75),),
)  # fmt: skip
AMOUNTS = {"cpu": Amounts(lower=0.5, target=1.0, upper=2.0)}
RECORD = EstimateRecord(
    estimator=NAME, version="1.0", seen=SEEN, amounts=AMOUNTS, reason="as ever", memory={"n": 1}
)


def again(answer, version="1.0", seen=None):
    def call(given):
        if seen is not None:
            seen.append(given)
        return answer

    return replay_estimate(RECORD, {NAME: LoadedEstimator(NAME, version, call)})


def test_a_record_is_read_as_it_was_written():
    assert loads(dumps(RECORD)) == RECORD
    assert dumps(loads(dumps(RECORD))) == dumps(RECORD)


def test_the_same_version_sees_the_same_input_and_the_same_answer_is_the_same():
    seen: list[EstimatorInput] = []
    repeated = again(Estimate(amounts=AMOUNTS, reason="as ever", memory={"n": 1}), seen=seen)
    assert seen == [SEEN]
    assert (repeated.is_same, repeated.difference) == (True, "")
    assert repeated.summary == "shop/web main: example.com/fixed 1.0: cpu 500m - 1 - 2: as ever"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            Estimate(amounts={}, reason="as ever", memory={"n": 1}),
            "+shop/web main: example.com/fixed 1.0: the built-in",
        ),
        (Estimate(amounts=AMOUNTS, reason="new", memory={"n": 1}), "2: new"),
        (Estimate(amounts=AMOUNTS, reason="as ever", memory={"n": 2}), "-{'n': 1}\n+{'n': 2}"),
        (PluginFailure(plugin=NAME, reason="x", message="it raised"), "no usable answer: it raised"),
    ],
    ids=["amounts", "reason", "memory", "failure"],
)
def test_any_other_answer_is_a_difference(answer, text):
    repeated = again(answer)
    assert not repeated.is_same
    assert text in repeated.difference


def test_another_version_and_none_repeat_the_recorded_answer_and_say_so():
    other = again(Estimate(amounts={}, reason="x"), version="2.0")
    missing = replay_estimate(RECORD, {})
    for repeated, note in ((other, "version 2.0 is loaded, not 1.0"), (missing, "the plug-in is not loaded")):
        assert repeated.is_same
        assert repeated.summary.endswith(f"as ever (the recorded answer: {note})")


def test_an_unknown_format_is_refused():
    with pytest.raises(WireError, match="format 9"):
        loads(dumps(RECORD).replace(b'"format":1', b'"format":9'))
