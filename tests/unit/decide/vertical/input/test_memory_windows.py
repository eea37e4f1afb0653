"""Memory windows that run while the recommender is restarted, or hands a VPA over: they go on as if nothing had been."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import HOUR_NS, Load, Recommender, member
from trimtab.decide.vertical.input.checkpoints import load_checkpoint, save_checkpoints
from trimtab.decide.vertical.input.memory_windows import (
    MAX_WINDOWS,
    WINDOWS_ANNOTATION,
    Window,
    decode_windows,
    encode_windows,
    save_windows,
)
from trimtab.decide.vertical.input.oom import OOM
from trimtab.decide.vertical.input.usage import record_oom
from trimtab.decide.vertical.rules import Rules
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint

GIB = 2**30
PEAK, USUAL = Load(200, 4 * GIB), Load(200, GIB)


def after_a_peak(rules=Rules.TRIMTAB, pods=("db-0",), *, hours: int = 2) -> Recommender:
    """A young workload that used much once: all its memory is in windows that still run."""
    recommender = Recommender([vpa("base")], rules=rules)
    recommender.observe([member(name) for name in pods])
    recommender.scrape(dict.fromkeys(pods, PEAK))
    for _ in range(hours * 4):
        recommender.scrape(dict.fromkeys(pods, USUAL), minutes=15)
    return recommender


def saved_by(recommender: Recommender) -> VerticalPodAutoscalerCheckpoint:
    """The checkpoint as the API server gives it back."""
    vpas = list(recommender.state.vpas.values())
    (made,) = save_checkpoints(recommender.state, vpas, recommender.now_ns)
    return wire.decode(wire.encode(made), VerticalPodAutoscalerCheckpoint)


def restarted(recommender: Recommender, pods=("db-0",), *, checkpoint=None) -> Recommender:
    other = Recommender([vpa("base")], rules=recommender.rules)
    other.now_ns = recommender.now_ns
    other.observe([member(name) for name in pods])
    assert load_checkpoint(other.state, checkpoint or saved_by(recommender), other.now_ns) is None
    return other


def memory_of(recommender: Recommender) -> object:
    status = saved_by(recommender).status
    return status.memory_histogram.bucket_weights, round(status.memory_histogram.total_weight, 6)


def go_on(recommender: Recommender, hours: int) -> None:
    for _ in range(hours):
        recommender.scrape({"db-0": USUAL}, minutes=60)


@pytest.mark.parametrize("rules", list(Rules))
def test_a_peak_of_today_survives_a_restart(rules):
    recommender = after_a_peak(rules)
    before = recommender.targets()["base"] or 0
    other = restarted(recommender)
    go_on(other, 1)
    after = other.targets()["base"] or 0
    assert (after == before) == rules.ours
    assert after == before or after < before / 2


def test_a_restarted_recommender_knows_what_one_knows_that_went_on():
    one = after_a_peak()
    two = restarted(restarted(one))
    for hours in (1, 20, 3, 24):
        assert memory_of(one) == memory_of(two)
        assert one.targets() == two.targets()
        go_on(one, hours)
        go_on(two, hours)
    assert memory_of(one) == memory_of(two)


def test_the_peak_of_a_pod_that_is_gone_is_history():
    one = after_a_peak(pods=("db-0", "db-1"))
    two = restarted(one, pods=("db-0",))
    vpas = list(two.state.vpas.values())
    assert set(save_windows(two.state, vpas, two.now_ns)["shop/base", "app"]) == {"db-0"}
    assert two.targets() == one.targets()
    assert saved_by(two).status.memory_histogram.bucket_weights


def test_a_window_that_ended_while_nobody_looked_is_history():
    one = after_a_peak()
    checkpoint = saved_by(one)
    one.now_ns += 30 * HOUR_NS
    two = restarted(one, checkpoint=checkpoint)
    assert two.targets()["base"] == one.targets()["base"]
    assert not save_windows(two.state, list(two.state.vpas.values()), two.now_ns)


def test_an_out_of_memory_kill_of_today_survives_a_restart_and_is_not_multiplied_by_the_next():
    one = after_a_peak()
    oom = OOM("shop", "db-0", "app", one.now_ns, 4 * GIB)
    assert record_oom(one.state, oom, one.now_ns) is None
    before = one.targets()
    two = restarted(one)
    assert two.targets() == before
    assert record_oom(two.state, oom, two.now_ns) is None
    assert two.targets() == before


def test_windows_of_a_history_that_somebody_else_saved_since_are_left_alone():
    """Upstream's recommender writes the status and keeps annotations: its history may hold these peaks already."""
    one = after_a_peak()
    mine = saved_by(one)
    go_on(one, 1)
    theirs = msgspec.structs.replace(mine, status=saved_by(one).status)
    two = restarted(one, checkpoint=theirs)
    assert not save_windows(two.state, list(two.state.vpas.values()), two.now_ns)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("windows", "cannot be read", id="no JSON"),
        pytest.param("[" * 100_000, "cannot be read", id="nested without end"),
        pytest.param('{"at":1,"windows":{"db-0":["1"]}}', "cannot be read", id="no windows"),
        pytest.param('{"at":1,"windows":{"db-0":[1,-5,0]}}', "pod db-0 holds an impossible", id="below zero"),
        pytest.param(
            f'{{"at":1,"windows":{{"db-0":[1,{2**63},0]}}}}', "pod db-0 holds an", id="beyond 64 bits"
        ),
    ],
)
def test_windows_that_are_none_are_refused_and_the_history_is_loaded_all_the_same(text, why):
    assert why in str(decode_windows(text, None))
    one = after_a_peak()
    checkpoint = saved_by(one)
    notes = {**checkpoint.metadata.annotations, WINDOWS_ANNOTATION: text}
    spoilt = msgspec.structs.replace(
        checkpoint, metadata=msgspec.structs.replace(checkpoint.metadata, annotations=notes)
    )
    other = Recommender([vpa("base")])
    other.observe([member("db-0")])
    refusal = load_checkpoint(other.state, spoilt, one.now_ns) or ""
    assert "checkpoint shop/base-app: annotation" in refusal
    assert "measured anew" in refusal
    assert other.targets("cpu") == one.targets("cpu")


def test_of_very_many_windows_the_highest_are_kept():
    pods = tuple(f"db-{number}" for number in range(MAX_WINDOWS + 5))
    recommender = Recommender([vpa("base")])
    recommender.observe([member(name) for name in pods])
    recommender.scrape({name: Load(100, GIB + number) for number, name in enumerate(pods)})
    vpas = list(recommender.state.vpas.values())
    found = save_windows(recommender.state, vpas, recommender.now_ns)["shop/base", "app"]
    assert set(pods) - set(found) == {f"db-{number}" for number in range(5)}
    assert len(encode_windows(found, None)) < 100_000
    assert decode_windows(encode_windows({"a": Window(1, 2, 3)}, None), None) == {"a": Window(1, 2, 3)}
