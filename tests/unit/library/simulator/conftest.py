"""Every decision that a simulated trace makes has the right reason and advice that works."""

from collections.abc import Iterator
from importlib import import_module

import pytest

from tests import reasons

MODULE = import_module("trimtab.library.simulator.hpa_runs")


@pytest.fixture(autouse=True)
def right_reasons(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check the reason and the advice of every decision."""
    ledger = reasons.Ledger()
    monkeypatch.setattr(MODULE, "decide", ledger.decide)
    yield
    assert not ledger.wrong, ledger.wrong[0]
