"""Loaded history of a VPA that is deleted and created again, or that changes its selector for a while."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import MINUTE_NS, Load, Recommender, member
from trimtab.decide.vertical.input.checkpoints import has_history, load_checkpoint, save_checkpoints
from trimtab.decide.vertical.rules import Rules
from trimtab.model import times
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint

BASE = "shop/base"
DB, CACHE = Selector.parse("app=db"), Selector.parse("app=cache")


def measured(minutes=30, rules=Rules.TRIMTAB) -> Recommender:
    recommender = Recommender([vpa("base")], rules=rules)
    recommender.observe([member("db-0")])
    for _ in range(minutes):
        recommender.scrape({"db-0": Load(200, 10**9)})
    return recommender


def saved(recommender: Recommender) -> VerticalPodAutoscalerCheckpoint:
    (checkpoint,) = save_checkpoints(recommender.state, [recommender.state.vpas[BASE]], recommender.now_ns)
    return checkpoint


def restarted(rules=Rules.TRIMTAB) -> Recommender:
    """Return a recommender that knows VPA `base` from its checkpoint alone."""
    recommender = Recommender([vpa("base")], rules=rules)
    assert load_checkpoint(recommender.state, saved(measured()), recommender.now_ns) is None
    return recommender


@pytest.mark.parametrize("rules", list(Rules))
def test_a_vpa_that_is_created_again_has_its_loaded_history(rules):
    state = restarted(rules).state
    state.retire_vpa(BASE)
    assert state.vpas == {}
    assert state.vpas_in("shop") == []
    assert len(state.table) == int(rules.ours), "history that is not kept frees its row"
    again = state.add_or_update_vpa(vpa("base"), DB)
    assert list(again.initial) == (["app"] if rules.ours else [])


def test_a_vpa_that_is_unknown_retires_nothing():
    state = restarted().state
    state.retire_vpa("shop/other")
    assert list(state.vpas) == [BASE]
    assert list(state.vpas[BASE].initial) == ["app"]


def test_a_retired_vpa_leaves_the_aggregates_of_its_pods():
    recommender = measured()
    (aggregate,) = recommender.state.aggregates.values()
    assert aggregate.is_under_vpa
    recommender.state.retire_vpa(BASE)
    assert list(recommender.state.aggregates.values()) == [aggregate]
    assert not aggregate.is_under_vpa


def test_loaded_history_of_a_vpa_that_stays_away_is_released_at_the_second_collection():
    state = restarted().state
    state.retire_vpa(BASE)
    state.release_retired_history()
    assert len(state.table) == 1, "the VPA may come back within the hour"
    state.release_retired_history()
    assert len(state.table) == 0
    assert state.add_or_update_vpa(vpa("base"), DB).initial == {}


def test_a_vpa_that_came_back_keeps_its_history_over_collections():
    state = restarted().state
    state.retire_vpa(BASE)
    state.release_retired_history()
    again = state.add_or_update_vpa(vpa("base"), DB)
    for _ in range(3):
        state.release_retired_history()
    assert list(again.initial) == ["app"]
    assert len(state.table) == 1


def test_history_of_another_selector_is_not_used_and_is_there_when_the_selector_returns():
    state = restarted().state
    other = state.add_or_update_vpa(vpa("base"), CACHE)
    assert other.initial == {}
    for _ in range(3):
        state.release_retired_history()
    assert list(state.add_or_update_vpa(vpa("base"), DB).initial) == ["app"], "its VPA was there all the time"


def test_only_the_last_selector_keeps_its_history():
    recommender = restarted()
    state = recommender.state
    state.add_or_update_vpa(vpa("base"), CACHE)
    assert load_checkpoint(state, saved(measured()), recommender.now_ns) is None
    assert len(state.table) == 2
    state.add_or_update_vpa(vpa("base"), Selector.parse("app=third"))
    assert len(state.table) == 1
    assert state.add_or_update_vpa(vpa("base"), DB).initial == {}


def test_the_history_of_another_vpa_is_retired_apart():
    recommender = Recommender([vpa("base"), vpa("other")])
    state = recommender.state
    for name in ("base", "other"):
        source = Recommender([vpa(name)])
        source.observe([member("db-0")])
        source.scrape({"db-0": Load(200, 10**9)})
        (checkpoint,) = save_checkpoints(source.state, [source.state.vpas[f"shop/{name}"]], source.now_ns)
        assert load_checkpoint(state, checkpoint, recommender.now_ns) is None
    state.retire_vpa(BASE)
    state.retire_vpa("shop/other")
    assert list(state.add_or_update_vpa(vpa("base"), DB).initial) == ["app"]
    assert list(state.add_or_update_vpa(vpa("other"), DB).initial) == ["app"]


def test_a_checkpoint_of_a_vpa_without_samples_is_new():
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    assert not has_history(recommender.state, BASE, saved(measured()))


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["by default", "as upstream"])
def test_a_checkpoint_that_was_loaded_is_not_new(rules):
    assert has_history(restarted(rules).state, BASE, saved(measured()))


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["by default", "as upstream"])
def test_a_checkpoint_of_the_samples_in_memory_is_not_new(rules):
    recommender = measured(rules=rules)
    assert has_history(recommender.state, BASE, saved(recommender))


@pytest.mark.parametrize(
    ("later_ns", "is_known"),
    [
        pytest.param(0, True, id="the same moment"),
        pytest.param(999_999_999, True, id="the same second, since checkpoints have whole seconds"),
        pytest.param(1_000_000_000, False, id="a second later"),
        pytest.param(-MINUTE_NS, True, id="a minute earlier"),
    ],
)
def test_samples_in_memory_replace_a_checkpoint_only_if_they_began_no_later(later_ns, is_known):
    checkpoint = saved(measured())
    first = checkpoint.status.first_sample_start
    assert first is not None
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    recommender.now_ns = times.to_ns(first) + later_ns - MINUTE_NS
    recommender.scrape({"db-0": Load(200, 10**9)})
    assert has_history(recommender.state, BASE, checkpoint) is is_known


def test_upstream_takes_any_sample_for_the_history():
    checkpoint = saved(measured())
    recommender = Recommender([vpa("base")], rules=Rules.VPA_1_8)
    recommender.observe([member("db-0")])
    recommender.scrape({"db-0": Load(200, 10**9)}, minutes=60)
    assert has_history(recommender.state, BASE, checkpoint)


def test_samples_of_another_container_are_no_history_of_this_one():
    recommender = measured()
    checkpoint = saved(recommender)
    spec = msgspec.structs.replace(checkpoint.spec, container_name="sidecar")
    checkpoint = msgspec.structs.replace(checkpoint, spec=spec)
    assert not has_history(recommender.state, BASE, checkpoint)


@pytest.mark.parametrize("order", [("young", "old"), ("old", "young")])
def test_the_oldest_of_several_aggregates_counts(order):
    checkpoint = saved(measured())
    recommender = Recommender([vpa("base")])
    recommender.observe([member(name) for name in order])
    recommender.scrape({"old": Load(200, 10**9)})
    recommender.scrape({"young": Load(200, 10**9)}, minutes=60)
    assert has_history(recommender.state, BASE, checkpoint)
