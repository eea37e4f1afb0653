"""Statuses of VPAs: conditions that are set and taken back, and what is not worth a write."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import NOW, index, pod, recommended, vpa, world
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.compat import DEFAULT, VPA_1_8
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.model import times
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VPAConditionType
from trimtab.operator.vertical.cluster_view import ControlSnapshot
from trimtab.operator.vertical.recommender.feeder import UnsupportedConfig
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


@pytest.mark.parametrize(("compat", "is_copied"), [(DEFAULT, True), (VPA_1_8, False)])
def test_why_pods_stay_is_copied_from_them_unless_as_upstream(compat, is_copied):
    pods = [pod("db-0"), pod("db-1", annotations={REFUSED_ANNOTATION: "exceeded quota"})]
    seen = world([STORED], pods)
    view: Any = SimpleNamespace(compat=compat, pods=pods)
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
    change = change_of(state, DEFAULT, None, NOW_NS, refused="exceeded quota")
    assert change is not None
    status, message = conditions(change)[VPAConditionType.REPLACEMENT_REFUSED]
    assert (status, "exceeded quota" in message) == ("True", True)
    stored = type(STORED)(metadata=STORED.metadata, spec=STORED.spec, status=change.status)
    state = VPAState(stored, Selector.parse("app=db"))
    state.update(stored, per_vpa=False)
    change = change_of(state, DEFAULT, None, NOW_NS)
    assert change is not None
    assert conditions(change).get(VPAConditionType.REPLACEMENT_REFUSED, ("False", ""))[0] == "False"


def test_an_excluded_namespace_is_a_condition_until_it_is_included():
    state = VPAState(STORED, Selector.parse("app=db"))
    state.update(STORED, per_vpa=False)
    excluded = UnsupportedConfig("NamespaceExcluded", "recommends only")
    change = change_of(state, DEFAULT, excluded, NOW_NS)
    assert change is not None
    assert conditions(change)[VPAConditionType.CONFIG_UNSUPPORTED] == ("True", "recommends only")
    change = change_of(state, DEFAULT, None, NOW_NS)
    assert change is None or VPAConditionType.CONFIG_UNSUPPORTED not in conditions(change)
