"""Amounts change by a sample of their container and resource only, and others stay while they can be trusted."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import FOLLOWER, LEADER, index, observed, scope, vpa
from tests.unit.decide.vertical.recommend.test_plugin_estimates import NAME, Fixed
from tests.unit.decide.vertical.samples import UsageBatch, add_usage
from tests.unit.decide.vertical.usage_builders import MINUTE_NS, Load, Recommender, member
from trimtab.decide.vertical.cluster_state.cluster import ContainerId, PodId
from trimtab.decide.vertical.control.claims import Trust
from trimtab.decide.vertical.recommend.plugin_estimates import LoadedEstimator
from trimtab.decide.vertical.rules import Rules
from trimtab.model.vpa.types import RecommenderSelector

GIB = 2**30
LEADERS, FOLLOWERS = scope("role", pods=LEADER), scope("role", pods=FOLLOWER)
PODS = [member("db-0", "leader")]


def learnt(owner, scopes=(), **more) -> Recommender:
    """Return a recommender that measured both resources for an hour."""
    recommender = Recommender([owner], scopes, **more)
    recommender.observe(PODS)
    for _ in range(60):
        recommender.scrape({"db-0": Load(400, 3 * GIB)})
    return recommender


def measure(recommender, resource, amount) -> None:
    """Add a sample of one resource: the metrics API lacks the other."""
    recommender.now_ns += MINUTE_NS
    batch = UsageBatch([ContainerId(PodId("shop", "db-0"), "app")], [amount], [recommender.now_ns])
    assert add_usage(recommender.state, resource, batch, recommender.now_ns).accepted == 1


def entry_of(recommender):
    """Return what is recommended for the container, or None."""
    recommendation = recommender.recommend()["base"].status.recommendation
    entries = recommendation.container_recommendations if recommendation else ()
    return entries[0] if entries else None


@pytest.mark.parametrize(("resource", "amount"), [("cpu", 900), ("memory", 9 * GIB)])
def test_nv_12_a_resource_without_a_sample_keeps_its_stored_amounts(resource, amount):
    """All pods were resized to 250Mi while they used 3 GB, because an empty histogram recommends the minimum."""
    before = learnt(vpa("base"))
    stored, after = entry_of(before), before.restarted()
    after.observe(PODS)
    measure(after, resource, amount)
    found = entry_of(after)
    assert found.target[resource] != stored.target[resource]
    (other,) = {"cpu", "memory"} - {resource}
    for bound in ("target", "lower_bound", "upper_bound", "uncapped_target"):
        assert getattr(found, bound)[other] == getattr(stored, bound)[other]


@pytest.mark.parametrize("rules", list(Rules))
def test_nv_12_a_resource_without_a_sample_and_without_stored_amounts_has_none(rules):
    recommender = Recommender([vpa("base")], rules=rules)
    recommender.observe(PODS)
    measure(recommender, "cpu", 400)
    made = recommender.recommend()["base"]
    entry = entry_of(recommender)
    wanted = {"cpu"} if rules.ours else {"cpu", "memory"}
    for bound in (entry.target, entry.lower_bound, entry.upper_bound, entry.uncapped_target):
        assert {*bound} == wanted
    assert {*made.containers[0].derivations["target"]} == wanted


def test_nv_13_a_start_without_checkpoints_and_metrics_keeps_the_recommendation():
    before = learnt(vpa("base"))
    after = before.restarted()
    after.observe(PODS)
    assert after.recommend()["base"].status == before.recommend()["base"].status


@pytest.mark.parametrize(
    ("scopes", "is_kept"),
    [
        pytest.param([LEADERS], True, id="the same pods"),
        pytest.param([FOLLOWERS], False, id="other pods"),
    ],
)
def test_amounts_of_another_scope_are_not_kept(scopes, is_kept):
    after = learnt(vpa("base", scope="role"), [LEADERS]).restarted(scopes=scopes)
    after.observe(PODS)
    assert (entry_of(after) is not None) is is_kept


@pytest.mark.parametrize(
    ("pods", "is_kept"), [([], True), (PODS, False)], ids=["no pods", "other containers"]
)
def test_a_container_stays_while_no_pod_can_say_that_it_is_gone(pods, is_kept):
    before = learnt(vpa("base"))
    (one,) = before.restarted().vpas
    entry = msgspec.structs.replace(
        one.status.recommendation.container_recommendations[0], container_name="former"
    )
    recommendation = msgspec.structs.replace(one.status.recommendation, container_recommendations=(entry,))
    status = msgspec.structs.replace(one.status, recommendation=recommendation)
    after = Recommender([msgspec.structs.replace(one, status=status)])
    after.observe(pods)
    found = entry_of(after)
    assert (found is not None and found.container_name == "former") is is_kept


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        pytest.param({"maxAllowed": {"memory": "1Gi"}}, {"cpu": None, "memory": "1Gi"}, id="a lower maximum"),
        pytest.param({"controlledResources": ["cpu"]}, {"cpu": None}, id="one resource"),
        pytest.param({"mode": "Off"}, {}, id="mode Off"),
    ],
)
def test_kept_amounts_follow_the_policy_of_now(policy, wanted):
    before = learnt(vpa("base", policies=[{"containerName": "app", "maxAllowed": {"memory": "2Gi"}}]))
    stored = entry_of(before)
    (one,) = before.restarted().vpas
    spec = vpa("base", policies=[{"containerName": "app", **policy}]).spec
    after = Recommender([msgspec.structs.replace(one, spec=spec)])
    after.observe(PODS)
    found = entry_of(after)
    shown = {name: str(amount) for name, amount in found.target.items()} if found else {}
    assert shown == {name: want or str(stored.uncapped_target[name]) for name, want in wanted.items()}


def test_nv_8_an_estimator_that_fails_marks_no_role_s_amounts_as_another_s():
    made = vpa("base", scope="role")
    named = msgspec.structs.replace(
        made, spec=msgspec.structs.replace(made.spec, recommenders=(RecommenderSelector(name=NAME),))
    )
    fixed = Fixed()
    before = Recommender([named], [LEADERS])
    before.estimators = {NAME: LoadedEstimator(NAME, "1.0", fixed)}
    before.observe(PODS)
    before.scrape({"db-0": Load(400, 3 * GIB)})
    after = before.restarted(scopes=[FOLLOWERS])
    after.estimators, fixed.failure = before.estimators, "down"
    pods = [member("db-0", "follower")]
    after.observe(pods)
    after.scrape({"db-0": Load(400, GIB)})
    status = after.recommend()["base"].status
    assert status.recommendation == before.recommend()["base"].status.recommendation
    written = msgspec.structs.replace(after.vpas[0], status=status)
    ((claim,),) = index(observed([written], pods, [FOLLOWERS])).by_target.values()
    assert claim.trust is Trust.NOTHING
