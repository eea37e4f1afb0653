"""What the flags of --storage mean: where history is read from, and which values are refused with their flag."""

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from trimtab.clock import VirtualClock
from trimtab.operator.settings.history import HistorySettings
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.history_loader import HistoryLoader, make_history

PROMETHEUS: dict[str, Any] = {"storage": "prometheus", "prometheus_address": "http://127.0.0.1:9"}


def made(**changed: Any) -> HistoryLoader | None:
    settings = replace(HistorySettings(), **changed)
    return make_history(VirtualClock(), settings, RecommenderMetrics(CollectorRegistry()))


def test_checkpoints_need_no_loader_and_prometheus_does() -> None:
    assert made(storage="checkpoint", history_length="soon") is None
    assert isinstance(made(**PROMETHEUS), HistoryLoader)
    assert isinstance(made(**PROMETHEUS, history_length="1s", history_resolution="1s"), HistoryLoader)


@pytest.mark.parametrize("flag", ["history_length", "history_resolution"])
@pytest.mark.parametrize("text", ["soon", "", "0s", "-1h", "999ms"])
def test_a_length_that_is_none_is_refused_with_its_flag(flag: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"--{flag.replace('_', '-')}"):
        made(**PROMETHEUS, **{flag: text})


def test_a_storage_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="--storage=disk is not known; use checkpoint or prometheus"):
        made(storage="disk")
