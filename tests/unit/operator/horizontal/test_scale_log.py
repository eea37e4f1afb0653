"""The log line of a scale: which HPA, from how many to how many replicas, why, and whether it was written."""

import logging

import pytest

from tests.unit.operator.horizontal.test_writer import FORBIDDEN, World


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
