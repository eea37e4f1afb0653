"""A pod that a loop leaves alone changes nothing for the pods before and after it."""

from datetime import timedelta

import pytest

from tests.unit.decide.vertical.policy_builders import (
    LEADER,
    NOW,
    Recorder,
    pod,
    recommended,
    resize_condition,
    restarting,
    run,
    scope,
    vpa,
)
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import ActionResult
from trimtab.decide.vertical.update.eviction_limits import NO_EVICTION_LIMITS
from trimtab.decide.vertical.update.loop_state import UpdaterSettings
from trimtab.decide.vertical.update.observation import ObservedController, ObservedVPA, UpdateObservation
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.model.feature_gates import FeatureGates

GATES = FeatureGates(vpa_selector_refinement=True, in_place=True, per_vpa_config=True, cpu_startup_boost=True)
SETTINGS = UpdaterSettings(ignored_namespaces=("kube-system",), eviction_limits=NO_EVICTION_LIMITS)
NOTE = {"vpaCpuStartupBoost/app": '{"requests":{"cpu":"100m","memory":"1Gi"},"limits":{}}'}
BOOST = [
    {"containerName": "app", "startupBoost": {"cpu": {"type": "Factor", "factor": 10, "durationSeconds": 15}}}
]
IN_PROGRESS = resize_condition("PodResizeInProgress", "")
DOWN = {"type": "Ready", "status": "False", "lastTransitionTime": NOW.isoformat()}


def three(name="db", **more):
    return [pod(f"{name}-{place}", owner=f"StatefulSet/{name}", **more) for place in range(3)]


def sized(name="db", mode="Recreate", memory="4Gi", **more):
    return vpa(name, recommended(memory, "200m"), mode=mode, target=f"StatefulSet/{name}", **more)


MAIN = {
    "evictions": ([sized()], three()),
    "resizes": ([sized(mode="InPlace")], three()),
    "resizes that restart": ([sized(mode="InPlaceOrRecreate")], [restarting(member) for member in three()]),
    "waiting resizes": ([sized(mode="InPlaceOrRecreate")], three(conditions=[resize_condition()])),
    "infeasible resizes": (
        [sized(mode="InPlaceOrRecreate")],
        three(conditions=[resize_condition(reason="Infeasible")]),
    ),
    "boosts that are over": ([sized(policies=BOOST)], three(cpu="1", annotations=NOTE)),
    "refusals": ([sized()], three(annotations={REFUSED_ANNOTATION: "no"})),
    "requirements": (
        [
            sized(
                evictionRequirements=[{"resources": ["cpu"], "changeRequirement": "TargetHigherThanRequests"}]
            )
        ],
        three(),
    ),
    "two roles": (
        [sized(scope="leader"), vpa("rest", recommended("2Gi"), target="StatefulSet/db", age_days=3)],
        [pod("db-0", LEADER), pod("db-1"), pod("db-2")],
    ),
}
BYSTANDERS = {
    "of an ignored namespace": ([], [pod("odd-0", namespace="kube-system", annotations=NOTE, cpu="1")]),
    "without a VPA": ([], [pod("odd-0", owner="StatefulSet/odd")]),
    "without an owner": ([], [pod("odd-0", owner=None)]),
    "finished": ([], [pod("odd-0", phase="Succeeded")]),
    "boosted and starting": (
        [sized("odd", policies=BOOST)],
        [pod("odd-0", owner="StatefulSet/odd", cpu="1", annotations=NOTE, conditions=[DOWN])],
    ),
    "boosted, of an unknown owner": (
        [],
        [pod("odd-0", owner="StatefulSet/unknown", cpu="1", annotations=NOTE)],
    ),
    "of a VPA in mode Off": ([sized("odd", mode="Off")], three("odd")),
    "of a VPA in mode Initial": ([sized("odd", mode="Initial")], three("odd")),
    "of a VPA without recommendation": ([vpa("odd", target="StatefulSet/odd")], three("odd")),
    "of a VPA without pods": ([sized("odd")], []),
    "as recommended": ([sized("odd", memory="1Gi")], three("odd", cpu="200m")),
    "pending": ([sized("odd", mode="InPlace")], three("odd", phase="Pending")),
    "being resized": ([sized("odd", mode="InPlace")], three("odd", conditions=[IN_PROGRESS])),
    "of too few pods": ([sized("odd", min_replicas=9)], three("odd")),
    "of an unknown controller": ([sized("odd", min_replicas=1)], three("odd")[:1]),
}


def observed(vpas, pods, *, known=("db", "odd")):
    controllers = {f"StatefulSet/shop/{name}": ObservedController(replicas=3) for name in known}
    return UpdateObservation(
        vpas=tuple(ObservedVPA(vpa=entry, selector="app=db") for entry in vpas),
        scopes=(scope("leader", LEADER),),
        pods=tuple(pods),
        controllers=controllers,
        serves_resize=True,
    )


def outcome(vpas, pods, *, known, rules):
    """Return what happens to the pods of `db` and what is said of them."""
    api = Recorder(db_1=ActionResult.REFUSED)
    asked, result = run(
        observed(vpas, pods, known=known), settings=SETTINGS, gates=GATES, rules=rules, api=api,
        now=NOW + timedelta(minutes=1),
    )  # fmt: skip
    return (
        [entry for entry in asked if entry[1].startswith("db")],
        [entry for entry in result.pod_results if entry.pod.startswith("shop/db")],
        [
            event
            for event in result.events
            if event.object in {"shop/db", "shop/rest"} or "db-" in event.object
        ],
    )


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["ours", "upstream"])
@pytest.mark.parametrize("odd", BYSTANDERS)
@pytest.mark.parametrize("main", MAIN)
def test_a_bystander_changes_nothing(main, odd, rules):
    vpas, pods = MAIN[main]
    odd_vpas, odd_pods = BYSTANDERS[odd]
    known = ("db",) if odd == "of an unknown controller" else ("db", "odd")
    alone = outcome(vpas, pods, known=known, rules=rules)
    before = outcome([*odd_vpas, *vpas], [*odd_pods, *pods], known=known, rules=rules)
    after = outcome([*vpas, *odd_vpas], [*pods, *odd_pods], known=known, rules=rules)
    assert before == alone
    assert after == alone


@pytest.mark.parametrize("main", MAIN)
def test_the_main_pods_are_acted_on(main):
    """A bystander that changes nothing proves nothing where nothing happens anyway."""
    asked, results, _ = outcome(*MAIN[main], known=("db",), rules=Rules.TRIMTAB)
    assert asked or {entry.action for entry in results} == {"none"}
    assert len(results) == 3
