"""Statuses of VPAs: conditions that are set and taken back, and what is not worth a write."""

from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.unit.decide.vertical.policy_builders import NOW, index, pod, recommended, vpa, world
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.model import times
from trimtab.model.core.meta import NamespacedName
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VPAConditionType
from trimtab.operator.settings.settings import NamespaceRules
from trimtab.operator.settings.vertical import EstimationSettings
from trimtab.operator.vertical.cluster_view import ControlSnapshot, Targeted
from trimtab.operator.vertical.estimation import Estimation
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.feeder import LoadResult, UnsupportedConfig
from trimtab.operator.vertical.recommender.status_builder import (
    FETCHING_MESSAGE,
    StatusBuilder,
    change_of,
    excluded_namespace,
    unsupported_change,
    waiting_change,
)

NOW_NS = times.to_ns(NOW)
STORED = vpa("base", recommended("1Gi"))


@pytest.mark.parametrize(("rules", "is_copied"), [(Rules.TRIMTAB, True), (Rules.VPA_1_8, False)])
def test_why_pods_stay_is_copied_from_them_unless_as_upstream(rules, is_copied):
    pods = [pod("db-0"), pod("db-1", annotations={REFUSED_ANNOTATION: "exceeded quota"})]
    seen = world([STORED], pods)
    view: Any = SimpleNamespace(rules=rules, pods=pods)
    unused: Any = None
    builder = StatusBuilder(view, unused, unused, unused, unused, is_dry_run=False)
    control = ControlSnapshot((), index(seen), seen.owners(), {})
    found = builder._refused_replacements(control)
    assert set(found) == ({"shop/base"} if is_copied else set())
    assert ("exceeded quota" in "".join(found.values())) is is_copied


def conditions(change: Any) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.message) for each in change.status.conditions}


def test_an_unsupported_vpa_keeps_its_recommendation_and_says_why():
    change = unsupported_change(STORED, UnsupportedConfig("TargetUnsupported", "no such target"), NOW_NS)
    assert change is not None
    assert conditions(change)[VPAConditionType.CONFIG_UNSUPPORTED] == ("True", "no such target")
    assert change.status.recommendation == STORED.status.recommendation
    assert change.status.observed_generation == STORED.status.observed_generation


@pytest.mark.parametrize(
    ("refusal", "message"), [("", FETCHING_MESSAGE), ("403", "Checkpoints cannot be read: 403")]
)
def test_a_vpa_that_waits_for_its_history_keeps_its_recommendation(refusal, message):
    change = waiting_change(STORED, NOW_NS, refusal)
    assert change is not None
    assert conditions(change)[VPAConditionType.FETCHING_HISTORY] == ("True", message)
    assert change.status.recommendation == STORED.status.recommendation


def test_a_condition_that_is_stored_is_not_written_again():
    change = waiting_change(STORED, NOW_NS)
    assert change is not None
    stored = type(STORED)(metadata=STORED.metadata, spec=STORED.spec, status=change.status)
    assert waiting_change(stored, NOW_NS + times.SECOND_NS) is None
    again = waiting_change(stored, NOW_NS, "403")
    assert again is not None


@pytest.mark.parametrize(("own", "is_advised"), [("trimtab", True), ("shop", False)])
def test_an_excluded_namespace_is_named_with_what_to_do(own, is_advised):
    found = excluded_namespace(STORED, own)
    assert found.reason == "NamespaceExcluded"
    assert "changes no pods in namespace shop" in found.message
    assert ("--include-kube-system" in found.message) is is_advised


def test_why_pods_stay_is_a_condition_until_they_need_not():
    state = VPAState(STORED, Selector.parse("app=db"))
    state.update(STORED, per_vpa=False)
    change = change_of(state, Rules.TRIMTAB, None, NOW_NS, refused="exceeded quota")
    assert change is not None
    status, message = conditions(change)[VPAConditionType.REPLACEMENT_REFUSED]
    assert (status, "exceeded quota" in message) == ("True", True)
    stored = type(STORED)(metadata=STORED.metadata, spec=STORED.spec, status=change.status)
    state = VPAState(stored, Selector.parse("app=db"))
    state.update(stored, per_vpa=False)
    change = change_of(state, Rules.TRIMTAB, None, NOW_NS)
    assert change is not None
    assert conditions(change).get(VPAConditionType.REPLACEMENT_REFUSED, ("False", ""))[0] == "False"


def test_an_excluded_namespace_is_a_condition_until_it_is_included():
    state = VPAState(STORED, Selector.parse("app=db"))
    state.update(STORED, per_vpa=False)
    excluded = UnsupportedConfig("NamespaceExcluded", "recommends only")
    change = change_of(state, Rules.TRIMTAB, excluded, NOW_NS)
    assert change is not None
    assert conditions(change)[VPAConditionType.CONFIG_UNSUPPORTED] == ("True", "recommends only")
    change = change_of(state, Rules.TRIMTAB, None, NOW_NS)
    assert change is None or VPAConditionType.CONFIG_UNSUPPORTED not in conditions(change)


class Built:
    """A builder over the small workload, whose VPA has an hour of usage."""

    def __init__(
        self, found: Any = None, *, is_dry_run: bool = False, unchanged: frozenset[str] = frozenset()
    ) -> None:
        self.vpa = vpa("base") if found is None else found
        self.recommender = Recommender([self.vpa])
        self.recommender.observe([member("db-0")])
        self.recommender.scrape({"db-0": Load(200, 2**30)}, minutes=60)
        owner: Any = SimpleNamespace(count=1, held=lambda: (0,), share=lambda _: 0)
        states = ShardedClusterStates(lambda: self.recommender.state, owner)
        states.sync_shards()
        self.registry = CollectorRegistry()
        rules = NamespaceRules("trimtab", unchanged, frozenset())
        view: Any = SimpleNamespace(rules=Rules.TRIMTAB, pods=[], nodes=[], capacities=dict)
        estimation = Estimation.from_settings(EstimationSettings())
        self.builder = StatusBuilder(
            view, states, rules, estimation, RecommenderMetrics(self.registry), is_dry_run=is_dry_run
        )
        seen = world([self.vpa, vpa("bad"), vpa("late")], [])
        targeted = [Targeted(each, Selector.parse("app=db")) for each in (self.vpa, vpa("bad"), vpa("late"))]
        self.control = ControlSnapshot(tuple(targeted), index(seen), seen.owners(), {})

    def build(self, **more: Any) -> dict[str, Any]:
        loaded = LoadResult((self.vpa.metadata.namespaced_name,), **{"unusable": {}, "new": (), **more})
        changes = self.builder.build(self.control, loaded, self.recommender.now_ns)
        return {change.vpa.metadata.name: change for change in changes}

    def latency(self, what: str) -> float | None:
        name = "vpa_recommender_recommendation_latency_seconds"
        return self.registry.get_sample_value(f"{name}_{what}")


def test_usable_vpas_are_recommended_and_others_say_why_they_are_not():
    built = Built()
    unusable = {NamespacedName("shop", "bad"): UnsupportedConfig("TargetUnsupported", "no such target")}
    changes = built.build(unusable=unusable, waiting={NamespacedName("shop", "late"): "403"})
    assert set(changes) == {"base", "bad", "late"}
    assert set(built.builder.recommendations) == {"shop/base"}
    assert changes["base"].status.recommendation is not None
    assert VPAConditionType.CONFIG_UNSUPPORTED in conditions(changes["bad"])
    assert conditions(changes["late"])[VPAConditionType.FETCHING_HISTORY][1].endswith("403")


def test_the_time_from_a_vpa_to_its_first_recommendation_is_observed():
    built = Built(vpa("base", age_days=0))
    created = built.vpa.metadata.creation_timestamp
    assert created is not None
    built.build()
    assert built.latency("count") == 1.0
    assert built.latency("sum") == (built.recommender.now_ns - times.to_ns(created)) / times.SECOND_NS == 3600
    for other in (Built(vpa("base", recommended("1Gi"))), Built(is_dry_run=True)):
        other.build()
        assert other.latency("count") == 0.0, "not the first, or not written"


@pytest.mark.parametrize(
    ("mode", "unchanged", "is_excluded"),
    [
        ("Recreate", {"shop"}, True),
        ("Off", {"shop"}, False),
        ("Recreate", {"kube-system"}, False),
    ],
)
def test_a_vpa_that_would_change_pods_where_none_may_be_changed_says_so(mode, unchanged, is_excluded):
    built = Built(vpa("base", mode=mode), unchanged=frozenset(unchanged))
    found = conditions(built.build()["base"])
    assert (VPAConditionType.CONFIG_UNSUPPORTED in found) is is_excluded


def test_a_condition_keeps_the_time_since_when_it_holds():
    excluded = UnsupportedConfig("NamespaceExcluded", "recommends only")

    def changed(found: Any, now_ns: int, message: str) -> Any:
        state = VPAState(found, Selector.parse("app=db"))
        state.update(found, per_vpa=False)
        state.conditions.pop(VPAConditionType.CONFIG_UNSUPPORTED, None)  # as recommending does
        return change_of(state, Rules.TRIMTAB, UnsupportedConfig(excluded.reason, message), now_ns)

    first = changed(STORED, NOW_NS, "recommends only")
    stored = type(STORED)(metadata=STORED.metadata, spec=STORED.spec, status=first.status)
    assert changed(stored, NOW_NS + 60 * times.SECOND_NS, "recommends only") is None
    later = changed(stored, NOW_NS + 60 * times.SECOND_NS, "another reason")
    times_of = [
        change.status.condition(VPAConditionType.CONFIG_UNSUPPORTED).last_transition_time
        for change in (first, later)
    ]
    assert times_of[0] == times_of[1] == NOW
