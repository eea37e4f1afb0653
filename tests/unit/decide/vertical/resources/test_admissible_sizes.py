"""Sizes that the API server admits: RV-H2, H6, H7, M7, L11, L12 and ruling 0077, each as it was found."""

import msgspec
import pytest

from tests.unit.decide.vertical.admission.test_admit import admit, patched
from tests.unit.decide.vertical.policy_builders import (
    NOW,
    Recorder,
    limit_range,
    raw_pod,
    recommended,
    run,
    vpa,
    why,
    world,
)
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import Resize
from trimtab.decide.vertical.update.loop_state import UpdaterSettings
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import RecommendedPodResources

REQUESTS_ONLY = [{"containerName": "*", "controlledValues": "RequestsOnly"}]
SKIPS_BUDGET = UpdaterSettings(skips_budget_in_place=True)


def container(name="app", requests=None, limits=None, **more):
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"name": name, "resources": resources, **more}


def raw(*containers, **spec):
    made = raw_pod()
    made["status"] = {}
    made["spec"] = {"containers": list(containers), **spec}
    return made


def recommending(*entries, **more):
    """Make a VPA that recommends for several containers."""
    made = vpa("base", entries[0], **more)
    both = RecommendedPodResources(container_recommendations=tuple(entries))
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, recommendation=both))


def admitted(given, controlling, *ranges, **more):
    return patched(given, admit(given, world([controlling], ranges=list(ranges)), **more).operations)


def amount(given, kind, resource="cpu", place=0):
    return given["spec"]["containers"][place]["resources"].get(kind, {}).get(resource)


def total(given, kind, resource="cpu"):
    return sum(
        Quantity.parse(container["resources"][kind][resource]).milli_value()
        for container in given["spec"]["containers"]
    )


def test_rv_h2_containers_grow_together_up_to_the_pod_level_requests():
    given = raw(
        container("app", {"cpu": "300m"}),
        container("side", {"cpu": "200m"}),
        resources={"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    )
    both = recommending(recommended(cpu="700m"), recommended(cpu="400m", container="side"))
    result = admitted(given, both)
    assert total(result, "requests") in (999, 1000)
    note = result["metadata"]["annotations"]["trimtab.dev/held-back"]
    assert "must be greater than or equal to aggregate container requests of 1100m" in note
    assert "cpu capped to fit the pod-level resources" in (result["metadata"]["annotations"]["vpaUpdates"])


def test_rv_h2_a_limit_in_proportion_stays_below_the_pod_level_limit():
    given = raw(
        container("app", {"cpu": "100m"}, {"cpu": "400m"}),
        resources={"requests": {"cpu": "900m"}, "limits": {"cpu": "1"}},
    )
    result = admitted(given, recommending(recommended(cpu="500m")))
    assert (amount(result, "requests"), amount(result, "limits")) == ("250m", "1")


def test_rv_h2_requests_stop_shrinking_where_the_ratio_of_the_limit_range_is_reached():
    given = raw(container("app", {"cpu": "500m"}, {"cpu": "1"}))
    ranges = limit_range(maxLimitRequestRatio={"cpu": "10"})
    result = admitted(given, recommending(recommended(cpu="25m"), policies=REQUESTS_ONLY), ranges)
    assert (amount(result, "requests"), amount(result, "limits")) == ("100m", "1")


def test_rv_h2_sidecars_count_in_a_limit_range_of_pods():
    given = raw(
        container("app", {"cpu": "1"}, {"cpu": "1"}),
        initContainers=[container("proxy", {"cpu": "400m"}, {"cpu": "400m"}, restartPolicy="Always")],
    )
    result = admitted(given, recommending(recommended(cpu="1900m")), limit_range("Pod", max={"cpu": "2"}))
    assert amount(result, "limits") == "1600m"


def test_rv_h2_a_ratio_that_is_at_its_maximum_is_rounded_down_and_not_up():
    given = raw(container("app", {"cpu": "100m"}, {"cpu": "150m"}))
    ranges = limit_range(maxLimitRequestRatio={"cpu": "1500m"})
    result = admitted(given, recommending(recommended(cpu="35m")), ranges)
    assert (amount(result, "requests"), amount(result, "limits")) == ("35m", "52m")


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param("25m", "500m", id="a Guaranteed pod keeps its class"),
        pytest.param("500m", "500m", id="what it has already may stay"),
    ],
)
def test_requests_only_never_changes_the_qos_class(wanted, want):
    given = raw(
        container("app", {"cpu": "500m", "memory": "1Gi"}, {"cpu": "500m", "memory": "1Gi"}),
    )
    result = admitted(given, recommending(recommended(cpu=wanted), policies=REQUESTS_ONLY))
    assert amount(result, "requests") == want
    is_noted = "trimtab.dev/held-back" in result["metadata"]["annotations"]
    assert is_noted is (wanted != want)


def test_a_burstable_pod_does_not_become_guaranteed_by_growing_to_its_limits():
    given = raw(container("app", {"cpu": "100m", "memory": "1Gi"}, {"cpu": "500m", "memory": "2Gi"}))
    entry = recommended("4Gi", "1")
    result = admitted(given, recommending(entry, policies=REQUESTS_ONLY))
    assert amount(result, "requests") == "500m"
    short = Quantity.parse(amount(result, "requests", "memory")).value()
    assert 2**31 - 4096 <= short < 2**31


def test_first_requests_end_the_class_best_effort():
    result = admitted(raw({"name": "app"}), recommending(recommended("1Gi", "100m")))
    assert result["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "100m", "memory": "1Gi"}}


def test_rv_h6_claims_survive_the_patch():
    given = raw({"name": "app", "resources": {"claims": [{"name": "gpu"}]}})
    result = admitted(given, recommending(recommended(cpu="100m")))
    assert result["spec"]["containers"][0]["resources"] == {
        "claims": [{"name": "gpu"}],
        "requests": {"cpu": "100m"},
    }


def test_rv_m7_requests_only_is_bounded_by_the_maximum_and_its_own_limit():
    given = raw(container("app", {"cpu": "100m"}, {"cpu": "1"}))
    only = recommending(recommended(cpu="900m"), policies=REQUESTS_ONLY)
    result = admitted(given, only, limit_range(max={"cpu": "2"}))
    assert amount(result, "requests") == "900m"


def test_rv_l12_a_pod_posted_with_a_status_is_sized_by_its_spec():
    given = raw({"name": "app"})
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}
    given["status"] = {"containerStatuses": [{"name": "app", "resources": resources}]}
    result = admitted(given, recommending(recommended(cpu="100m")))
    assert result["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "100m"}}


@pytest.mark.parametrize(
    ("off", "want"),
    [
        pytest.param("100m", 400, id="what is recommended makes room for what is not"),
        pytest.param("300m", 200, id="however much that is"),
    ],
)
def test_0077_a_pod_limit_range_holds_beside_containers_nobody_recommends_for(off, want):
    given = raw(
        container("app", {"cpu": "100m"}, {"cpu": "100m"}), container("side", {"cpu": off}, {"cpu": off})
    )
    only = recommending(recommended(cpu="800m"))
    result = admitted(given, only, limit_range("Pod", max={"cpu": "500m"}))
    assert total(result, "limits") <= 500
    assert Quantity.parse(amount(result, "limits")).milli_value() == want
    assert amount(result, "limits", place=1) == off


def test_0077_a_template_that_is_refused_as_it_is_starts_as_upstreams_does():
    given = raw(
        container("app", {"cpu": "100m"}, {"cpu": "100m"}),
        container("side", {"cpu": "400m"}, {"cpu": "400m"}),
    )
    arguments = given, recommending(recommended(cpu="400m")), limit_range("Pod", max={"cpu": "400m"})
    for rules in ({}, {"rules": Rules.VPA_1_8}):
        result = admitted(*arguments, **rules)
        assert [amount(result, "limits", place=place) for place in (0, 1)] == ["200m", "200m"]


def test_a_pod_that_no_size_could_save_is_left_alone_and_says_why():
    given = raw(container("app", {"cpu": "100m"}))
    answer = admit(
        given,
        world(
            [recommending(recommended(cpu="200m"))], ranges=[limit_range(maxLimitRequestRatio={"cpu": "2"})]
        ),
    )
    result = patched(given, answer.operations)
    assert result["spec"] == given["spec"]
    assert "no limit is specified" in result["metadata"]["annotations"]["trimtab.dev/held-back"]


def in_place(given, controlling, **more):
    """Run a loop over one pod; return it as the API server has it afterwards, with what was asked and said."""
    api = Recorder()
    asked, result = run(
        world([controlling], [wire.convert(given, Pod)], **more), settings=SKIPS_BUDGET, api=api, now=NOW
    )
    for action in api.actions:
        if isinstance(action, Resize):
            annotations = {
                **given["metadata"].get("annotations", {}),
                **action.plan.annotations_before,
                **action.plan.annotations_after,
            }
            given = patched(given, action.operations)
            given["metadata"]["annotations"] = annotations
    return given, asked, result


@pytest.mark.parametrize(
    ("request_", "limit"), [("100m", "150m"), ("250m", "400m"), ("3m", "4m"), ("999m", "1")]
)
def test_rv_h7_the_ratio_of_limits_does_not_wear_down_over_role_moves(request_, limit):
    given = raw_pod(cpu=request_, limits={"cpu": limit, "memory": "1Gi"})
    ratio = Quantity.parse(limit).milli_value() / Quantity.parse(request_).milli_value()
    sizes = {"leader": "1013m", "follower": "35m"}
    for move in range(200):
        role = "leader" if move % 2 == 0 else "follower"
        controlling = vpa(role, recommended(cpu=sizes[role]), mode="InPlaceOrRecreate", min_replicas=1)
        given, asked, _ = in_place(given, controlling)
        assert asked == [("resize", "db-0")], move
        milli = Quantity.parse(sizes[role]).milli_value()
        found = Quantity.parse(amount(given, "limits")).milli_value()
        assert milli * ratio <= found + 1e-6, move
        assert found < milli * ratio + 1, move
        assert found > milli, "the class would change, and the server refuse the resize"


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        pytest.param({}, "QoS class may not change from BestEffort to Burstable", id="without requests"),
        pytest.param(
            {"requests": {"cpu": "50m"}, "claims": [{"name": "gpu"}]}, "resource claims", id="with a claim"
        ),
    ],
)
def test_rv_l11_a_resize_that_the_server_must_refuse_is_not_sent_and_said(resources, words):
    given = raw_pod()
    given["spec"]["containers"][0]["resources"] = resources
    controlling = vpa("base", recommended(cpu="100m"), mode="InPlace", min_replicas=1)
    _, asked, result = in_place(given, controlling)
    assert asked == []
    assert words in why(result, "db-0")
    assert [event.reason for event in result.events] == ["InPlaceResizeSkipped"]
    assert words in result.events[0].message


def test_a_resize_that_cannot_be_becomes_an_eviction_where_the_mode_allows_it():
    pods = [wire.convert(given, Pod) for given in (_bare("db-0"), _bare("db-1"))]
    controlling = vpa("base", recommended(cpu="100m"), mode="InPlaceOrRecreate")
    asked, _ = run(world([controlling], pods))
    assert asked == [("evict", "db-0")]


def _bare(name):
    given = raw_pod(name)
    given["spec"]["containers"][0]["resources"] = {}
    return given


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate"])
def test_a_pod_that_has_all_that_is_admitted_is_not_evicted_for_more(mode):
    """Seen without this: evicted, admitted at the same size, evicted again until the eviction limit held."""
    side = container("proxy", {"cpu": "500m"}, {"cpu": "500m"}, restartPolicy="Always")
    pods = []
    for place in range(3):
        given = raw_pod(f"db-{place}", cpu="500m", limits={"cpu": "500m"})
        given["spec"]["initContainers"] = [side]
        pods.append(wire.convert(given, Pod))
    controlling = vpa("base", recommended(cpu="2"), mode=mode)
    asked, result = run(world([controlling], pods, ranges=[limit_range("Pod", max={"cpu": "1"})]))
    assert asked == []
    assert "maximum cpu usage per Pod is 1, but limit is" in why(result, "db-0")
