"""Explanations name the VPA that controls a pod, and the VPAs that do not, with the reason."""

import pytest

from tests.unit.decide.vertical.policy_builders import (
    FOLLOWER,
    LEADER,
    index,
    pod,
    recommended,
    run,
    scope,
    vpa,
    world,
)
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.explain import (
    CompetingVpa,
    ContainerExplanation,
    PodExplanation,
    explain_pod,
    explain_vpa,
    pod_lines,
    vpa_lines,
)
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity

SCOPES = [scope("leader", pods=LEADER), scope("gold", pods={"tier": "gold"})]


def seen_by_all():
    capped = [{"containerName": "app", "maxAllowed": {"memory": "6Gi"}}]
    vpas = [
        vpa("base", recommended("2Gi")),
        vpa(
            "leader",
            recommended("8Gi"),
            scope="leader",
            mode="InPlaceOrRecreate",
            min_replicas=1,
            policies=capped,
        ),
        vpa("gold", recommended("3Gi"), scope="gold"),
        vpa("dry", recommended("9Gi"), scope="leader", mode="Off"),
        vpa("broken", recommended("9Gi"), scope="absent", mode="Off"),
    ]
    pods = [pod(f"db-{place}", LEADER if place == 0 else FOLLOWER) for place in range(3)]
    return world(vpas, pods, SCOPES)


def explained_leader():
    seen = seen_by_all()
    _, result = run(seen)
    pod_result = next(pod_result for pod_result in result.pod_results if pod_result.pod == "shop/db-0")
    return explain_pod(seen.pods[0], index(seen), seen.owners(), {}, last_update=pod_result)


def test_a_pods_explanation_names_its_controller_and_what_lost_to_what():
    found = explained_leader()
    assert found.controlled_by == "shop/leader"
    lost = {rival.vpa: rival.reason for rival in found.lost}
    assert "speaks for a part" in lost["shop/base"]
    assert "podSelector tier=gold" in lost["shop/gold"]
    assert lost["shop/dry"] == "its update mode is Off"
    assert "'absent'" in lost["shop/broken"]
    assert found.teaches == ("shop/leader", "shop/dry")


def test_a_pods_explanation_shows_sizes_cuts_and_what_the_last_loop_did():
    found = explained_leader()
    (container,) = found.containers
    assert str(container.requests["memory"]) == "1Gi"
    assert str(container.wanted_requests["memory"]) == "6Gi"
    assert "app: memory capped to maxAllowed: 8Gi became 6Gi" in container.cuts
    assert found.update == "resized: its requests are outside the recommended range"


def test_nv_3_an_explanation_says_why_it_is_not_known_whose_pod_it_is():
    seen = world([vpa("base", recommended("2Gi")), vpa("leader", scope="gone")], [pod("db-0", LEADER)])
    one, known = seen.pods[0], index(seen)
    found = explain_pod(one, known, seen.owners(), {})
    assert (found.controlled_by, found.teaches, found.containers) == (None, (), ())
    assert "VPA shop/leader names VPAScope 'gone', which does not exist" in found.reason
    base = known.claims_on(ControllerKey("shop", "StatefulSet", "db"))[0]
    assert explain_vpa(base, seen.pods, known, seen.owners(), {}).not_fed_by == {"shop/db-0": found.reason}


def test_a_vpas_explanation_says_which_pods_feed_it_and_why_others_do_not():
    seen = seen_by_all()
    known = index(seen)
    claims = {claim.key: claim for claim in known.claims_on(ControllerKey("shop", "StatefulSet", "db"))}
    leader = explain_vpa(claims["shop/leader"], seen.pods, known, seen.owners(), {})
    assert leader.fed_by == ("shop/db-0",)
    assert "podSelector role=leader" in leader.not_fed_by["shop/db-1"]
    assert (leader.level, leader.scope) == (1, "pods with role=leader")
    base = explain_vpa(claims["shop/base"], seen.pods, known, seen.owners(), {})
    assert base.fed_by == ("shop/db-1", "shop/db-2")
    assert base.scope == "all pods of the target"
    assert "precedes it" in base.not_fed_by["shop/db-0"]
    assert explain_vpa(claims["shop/dry"], seen.pods, known, seen.owners(), {}).fed_by == ("shop/db-0",)
    assert explain_vpa(claims["shop/broken"], seen.pods, known, seen.owners(), {}).scope.startswith(
        "nothing: "
    )


def test_a_vpas_explanation_shows_how_each_amount_came_about_and_every_cut():
    bounded = [{"containerName": "app", "maxAllowed": {"memory": "6Gi"}}]
    vpas = [vpa("base"), vpa("leader", scope="leader", policies=bounded)]
    pods = [member("db-0", "leader"), member("db-1", "follower")]
    recommender = Recommender(vpas, SCOPES)
    recommender.observe(pods)
    recommender.scrape({"db-0": Load(4000, 8 * 10**9), "db-1": Load(300, 10**9)})
    made = recommender.recommend()["leader"]
    seen = world(vpas, pods, SCOPES)
    known = index(seen)
    claim = known.claims_on(ControllerKey("shop", "StatefulSet", "db"))[0]
    found = explain_vpa(claim, pods, known, seen.owners(), {}, made.containers, made.cuts)
    target = next(entry for entry in found.amounts if (entry.bound, entry.resource) == ("target", "memory"))
    assert target.amount == 9616998332, "fixture F5"
    assert target.text.startswith("8.96 GiB: 90 % of memory peaks are at most ")
    assert "app: memory capped to maxAllowed: 9616998332 became 6Gi" in found.cuts
    lines = vpa_lines(found)
    assert lines[:2] == [
        "VPA shop/leader: mode Recreate, for pods with role=leader",
        "  learns from shop/db-0",
    ]
    assert any(line.startswith("  app memory target: 8.96 GiB: 90 %") for line in lines)
    assert "  app memory upper bound: no upper bound yet: 1 sample" in lines


def test_lines_are_for_people():
    lines = pod_lines(explained_leader())
    assert lines[0] == ("pod shop/db-0: controlled by shop/leader: VPA shop/leader precedes shop/base")
    assert "  last update loop: resized: its requests are outside the recommended range" in lines
    assert "  app: requests cpu 100m, memory 1 GiB, would get memory 6 GiB" in lines


@pytest.mark.parametrize(("teaches", "counts"), [((), "no VPA"), (("shop/a", "shop/b"), "shop/a, shop/b")])
def test_the_lines_of_a_pod_say_all_that_is_explained(teaches, counts):
    container = ContainerExplanation(
        name="app",
        requests={"memory": Quantity.parse("1Gi")},
        wanted_requests={},
        wanted_limits={},
        cuts=("app: memory capped", "app: cpu capped"),
    )
    found = PodExplanation(
        pod="shop/db-0",
        controlled_by="shop/a",
        reason="it matches",
        lost=(CompetingVpa(vpa="shop/c", reason="no"), CompetingVpa(vpa="shop/d", reason="never")),
        conflicts=("both claim it", "all claim it"),
        teaches=teaches,
        containers=(container,),
        update="skipped",
    )
    assert pod_lines(found) == [
        "pod shop/db-0: controlled by shop/a: it matches",
        "  shop/c does not control it: no",
        "  shop/d does not control it: never",
        "  conflict: both claim it",
        "  conflict: all claim it",
        f"  its usage counts for {counts}",
        "  app: requests memory 1 GiB, would get nothing",
        "    app: memory capped",
        "    app: cpu capped",
        "  last update loop: skipped",
    ]


def test_an_explanation_is_data():
    found = explained_leader()
    assert wire.decode(wire.encode(found), type(found)) == found
