"""What one decision costs, in bytecodes and bytes: counts that do not depend on how busy the machine is.

A bound that breaks is either a regression or a price worth paying: look with `make bench ARGS=horizontal`, then move it.
"""

import gc
import tracemalloc

import pytest

from bench.horizontal import NOW, observed, opcodes
from trimtab.decide.horizontal import decide

MOST_BYTECODES = 3_150
"""Of a decision about one pod. 250 of them are the reasons that each step keeps, 30 when samples came and began."""

MOST_BYTECODES_PER_POD = {None: 85, "OwnerReference": 145}
"""That one more pod adds, by how pods are selected."""

MOST_BYTES_AT_ONCE = 5_300
"""That a decision about ten pods has in use at its peak, its result included."""


def test_bytecodes_of_a_decision():
    assert opcodes(observed(1)) <= MOST_BYTECODES


@pytest.mark.parametrize(("strategy", "most"), MOST_BYTECODES_PER_POD.items())
def test_bytecodes_that_a_pod_adds(strategy, most):
    few, many = (opcodes(observed(count, strategy)) for count in (10, 110))
    assert (many - few) / 100 <= most


def test_bytes_that_a_decision_takes():
    seen = observed(10)
    decide(seen, NOW)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    decide(seen, NOW)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak <= MOST_BYTES_AT_ONCE
