"""The log line of a scale: which HPA, from how many to how many replicas, why, and whether it was written."""

import logging

import pytest

from tests.unit.decide.horizontal.builders import NOW, observe
from tests.unit.operator.horizontal.test_writer import EPOCH, FORBIDDEN, World
from trimtab.decide.horizontal import decide
from trimtab.decide.horizontal.observation.observation import ScaleFailure
from trimtab.operator.horizontal.observe import Snapshot
from trimtab.operator.horizontal.targets import ResolvedTarget


@pytest.mark.parametrize(
    ("failure", "level", "message"),
    [(None, "INFO", "scaled"), (FORBIDDEN, "WARNING", "not scaled")],
    ids=["written", "refused"],
)
def test_each_scale_is_one_line(failure, level, message, caplog):
    caplog.set_level(logging.INFO, "trimtab.operator.horizontal.writer")
    World(scale=failure).apply()
    (line,) = [record for record in caplog.records if record.message in {"scaled", "not scaled"}]
    assert (line.levelname, line.message) == (level, message)
    facts = line.__dict__["facts"]
    assert (facts["hpa"], facts["from"], facts["to"]) == ("shop/web", 4, 8)
    assert facts["reason"]
    assert ("error" in facts) == (failure is not None)


def test_a_decision_that_does_not_scale_has_no_line(caplog):
    caplog.set_level(logging.INFO, "trimtab.operator.horizontal.writer")
    World().apply(replicas=8)
    assert not [record for record in caplog.records if record.message in {"scaled", "not scaled"}]


@pytest.mark.parametrize(
    ("advice", "lines"), [("install with scalable=[]", 1), ("", 0)], ids=["a missing right", "no such target"]
)
def test_a_missing_right_to_a_scale_is_one_line_with_what_gives_it(advice, lines, caplog):
    """The condition and the event had the value of the installation that gives the right, the log had nothing."""
    world = World()
    failure = ScaleFailure(message="forbidden", step="query", advice=advice)
    observation = observe(world.state.hpa, 4, scale=None, scale_failure=failure)
    snapshot = Snapshot(ResolvedTarget(failure=failure), observation, NOW, EPOCH)
    for _ in range(2):
        world.writer.prepare(world.state, snapshot, decide(observation, NOW))
    facts = [
        record.__dict__["facts"] for record in caplog.records if record.message == "scale cannot be read"
    ]
    assert [(fact["hpa"], fact["why"]) for fact in facts] == [("shop/web", f"forbidden; {advice}")] * lines
