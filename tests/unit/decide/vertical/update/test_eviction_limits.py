"""F57 and F58: what holds evictions back beyond the budget; and the budget as a property."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import (
    NOW,
    Recorder,
    pod,
    recommended,
    run,
    scope,
    vpa,
    why,
    world,
)
from trimtab.decide.vertical.update.actions import ActionResult
from trimtab.decide.vertical.update.eviction_limits import (
    NO_EVICTION_LIMITS,
    EvictionBackoff,
    EvictionLimits,
    EvictionLimitSettings,
    EvictionTrial,
    drop_expired,
    evaluate_trial,
    evictions_left,
)
from trimtab.decide.vertical.update.loop_state import (
    UPSTREAM_SETTINGS,
    UpdaterSettings,
    UpdaterState,
)
from trimtab.decide.vertical.update.observation import ObservedController

MINUTE = timedelta(minutes=1)


def many_workloads(count, replicas=4):
    """Observe many StatefulSets whose recommendation has just moved, all at once."""
    vpas, pods, controllers = [], [], {}
    for number in range(count):
        name = f"web{number:03}"
        vpas.append(vpa(name, recommended("4Gi"), target=f"StatefulSet/{name}"))
        pods += [pod(f"{name}-{place}", owner=f"StatefulSet/{name}") for place in range(replicas)]
        controllers[f"StatefulSet/shop/{name}"] = ObservedController(replicas=replicas)
    return world(vpas, pods, controllers=controllers)


def evictions(asked):
    return [name for kind, name in asked if kind == "evict"]


def test_f57_no_more_than_ten_evictions_a_minute_in_the_whole_cluster():
    seen = many_workloads(30)
    asked, first = run(seen)
    assert len(evictions(asked)) == 10
    asked, second = run(seen, first.state, now=NOW + timedelta(seconds=59))
    assert evictions(asked) == []
    asked, _ = run(seen, second.state, now=NOW + MINUTE)
    assert len(evictions(asked)) == 10


def test_f57_no_more_than_one_at_a_time_per_controller():
    asked, _ = run(many_workloads(5, replicas=20))
    assert len({name.rpartition("-")[0] for name in evictions(asked)}) == len(evictions(asked)) == 5


def down(name, since=timedelta(days=1)):
    """Make a pod that is killed for memory again and again."""
    killed = {
        "reason": "OOMKilled",
        "startedAt": (NOW - timedelta(seconds=40)).isoformat(),
        "finishedAt": (NOW - timedelta(seconds=20)).isoformat(),
    }
    status = {"name": "app", "restartCount": 9, "lastState": {"terminated": killed}}
    not_ready = {"type": "Ready", "status": "False", "lastTransitionTime": (NOW - since).isoformat()}
    return pod(name, conditions=[not_ready], statuses=[status])


ONE_MISSING = UpdaterSettings(
    eviction_limits=EvictionLimitSettings(max_evictions_per_minute=None, max_share_per_minute=None)
)


@pytest.mark.parametrize("replicas", [2, 3, 10])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_pods_that_are_down_do_not_hold_back_each_others_rescue(replicas, count):
    """Evicting what is down takes nothing away; without it two pods that run out of memory were never given more."""
    pods = [(down if place < count else pod)(f"db-{place}") for place in range(replicas)]
    seen = world([vpa("base", recommended("4Gi"))], pods)
    asked, _ = run(seen, settings=ONE_MISSING)
    assert evictions(asked) == [f"db-{place}" for place in range(min(count, replicas))]


def test_a_pod_that_is_ready_is_held_back_while_another_is_down():
    seen = world(
        [vpa("base", recommended("4Gi"))], [down("db-0"), *(pod(f"db-{place}") for place in (1, 2, 3))]
    )
    asked, result = run(seen, settings=ONE_MISSING)
    assert evictions(asked) == ["db-0"]
    assert why(result, "db-1") == "StatefulSet/shop/db already lacks 1 of its pods"


@pytest.mark.parametrize(
    ("workloads", "want"),
    [
        pytest.param(2, 1, id="a tenth of 8 pods is less than one: one goes all the same"),
        pytest.param(6, 2, id="a tenth of 24 pods is two"),
    ],
)
def test_a_share_of_the_clusters_pods_bounds_evictions_too(workloads, want):
    assert len(evictions(run(many_workloads(workloads))[0])) == want


def test_upstream_has_no_brake_but_the_budget():
    assert len(evictions(run(many_workloads(30), settings=UPSTREAM_SETTINGS)[0])) == 60


def replacement(place, moment, memory="1Gi"):
    return pod(f"db-{place}", memory=memory, uid=f"uid-{moment}", created=moment)


def test_f58_after_three_fruitless_evictions_stop_say_so_and_retry_in_an_hour():
    state, now, pods = UpdaterState(), NOW, [pod(f"db-{place}") for place in range(3)]
    evicted = []
    for _ in range(6):
        asked, result = run(world([vpa("base", recommended("4Gi"))], pods), state, now=now)
        evicted += evictions(asked)
        state, now = result.state, now + MINUTE
        if asked:
            place = int(asked[0][1][-1])
            pods[place] = replacement(place, now - timedelta(seconds=30))
        warnings = [event for event in result.events if event.reason == "EvictionFruitless"]
        if len(evicted) == 3 and warnings:
            break
    assert len(evicted) == 3
    (warning,) = warnings
    assert (warning.type, warning.object) == ("Warning", "shop/base")
    assert "StatefulSet/shop/db" in warning.message
    seen = world([vpa("base", recommended("4Gi"))], pods)
    asked, result = run(seen, state, now=now + timedelta(minutes=30))
    assert asked == []
    assert "changed nothing lately" in why(result, "db-1")
    asked, _ = run(seen, result.state, now=now + timedelta(hours=1))
    assert len(evictions(asked)) == 1


def test_an_eviction_whose_replacement_is_changed_clears_the_count():
    state, now, pods = UpdaterState(), NOW, [pod(f"db-{place}") for place in range(3)]
    for memory in ("1Gi", "1Gi", "4Gi"):
        asked, result = run(world([vpa("base", recommended("4Gi"))], pods), state, now=now)
        place = int(evictions(asked)[0][-1])
        now += MINUTE
        pods[place] = replacement(place, now - timedelta(seconds=30), memory)
        state = result.state
    _, result = run(world([vpa("base", recommended("4Gi"))], pods), state, now=now)
    assert result.state.eviction_limits.trials["StatefulSet/shop/db"].ineffective == 0


def test_an_eviction_that_the_api_refuses_waits_longer_each_time():
    seen = world([vpa("base", recommended("4Gi"), min_replicas=1)], [pod()])
    state, now, waits = UpdaterState(), NOW, []
    for _ in range(6):
        asked, result = run(seen, state, now=now, api=Recorder(db_0=ActionResult.REFUSED))
        assert evictions(asked) == ["db-0"]
        state = result.state
        until = state.eviction_limits.backoffs["uid-db-0"].until
        waits.append((until - now).total_seconds())
        asked, result = run(seen, state, now=until - timedelta(seconds=1))
        assert asked == []
        state, now = result.state, until
    assert waits == [60, 120, 240, 480, 600, 600]


def test_what_the_brakes_remember_goes_with_its_pods():
    seen = world([vpa("base", recommended("4Gi"), min_replicas=1)], [pod()])
    _, result = run(seen, api=Recorder(db_0=ActionResult.REFUSED))
    assert result.state.eviction_limits.backoffs
    _, later = run(world([]), result.state, now=NOW + timedelta(hours=2))
    assert later.state == UpdaterState()


ROLES = ("a", "b", None)
SCOPES = [scope(role, pods={"role": role}) for role in ROLES if role]
FREE = EvictionLimitSettings(
    max_evictions_per_minute=None,
    max_share_per_minute=None,
    max_missing_per_controller=None,
    max_ineffective=None,
)


@settings(max_examples=60)
@given(
    roles=st.lists(st.sampled_from(ROLES), min_size=1, max_size=8),
    modes=st.lists(st.sampled_from(["Recreate", "InPlaceOrRecreate", "InPlace"]), min_size=3, max_size=3),
    pending=st.sets(st.integers(0, 7)),
    tolerance=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    missing=st.integers(0, 2),
    failures=st.dictionaries(st.integers(0, 7), st.sampled_from(list(ActionResult))),
    names=st.permutations(["x", "y", "z"]),
)
def test_the_budget_is_never_exceeded_whatever_the_order_of_vpas(
    roles, modes, pending, tolerance, missing, failures, names
):
    pods = [
        pod(f"db-{place}", {"role": role} if role else {}, phase="Pending" if place in pending else "Running")
        for place, role in enumerate(roles)
    ]
    # Names decide the order in which VPAs are looked at, so permuting them permutes the loop.
    vpas = [
        vpa(name, recommended("4Gi"), scope=role, mode=mode, min_replicas=1)
        for name, role, mode in zip(names, ROLES, modes, strict=True)
    ]
    configured = len(pods) + missing
    api = Recorder(**{f"db_{place}": outcome for place, outcome in failures.items()})
    run(
        world(vpas, pods, SCOPES, replicas=configured),
        settings=UpdaterSettings(eviction_tolerance=tolerance, eviction_limits=FREE),
        api=api,
    )
    disturbed = {
        action.pod.name
        for action in api.actions
        if action.pod.status.phase != "Pending"
        and api.outcomes.get(action.pod.name, ActionResult.DONE) is ActionResult.DONE
    }
    running = sum(member.status.phase != "Pending" for member in pods)
    allowed = int(configured * tolerance)
    if allowed == 0:
        assert len(disturbed) <= (running == configured)
    else:
        assert running - len(disturbed) >= min(configured - allowed, running)


BASE, WEB = "StatefulSet/shop/db", "StatefulSet/shop/web"


def two_workloads(now, *, changed="1Gi"):
    """Observe two StatefulSets of three pods each; one pod of `db` and one of `web` were just replaced."""
    names = [f"{name}-{place}" for name in ("db", "web") for place in range(3)]
    pods = [
        pod(
            name,
            owner=f"StatefulSet/{name[:-2]}",
            memory=changed if name.endswith("0") else "1Gi",
            created=now if name.endswith("0") else NOW - timedelta(days=30),
        )
        for name in names
    ]
    vpas = [vpa(name, recommended("4Gi"), target=f"StatefulSet/{name}") for name in ("db", "web")]
    return world(vpas, pods, controllers={key: ObservedController(replicas=3) for key in (BASE, WEB)})


def after_evictions(**counts):
    """Make the state after fruitless evictions of the named workloads, the last one of each just now."""
    trials = {
        f"StatefulSet/shop/{name}": EvictionTrial(
            ineffective=count, evicted_at=NOW + timedelta(milliseconds=700), requests=REQUESTS
        )
        for name, count in counts.items()
    }
    return UpdaterState(eviction_limits=EvictionLimits(trials=trials))


REQUESTS = "app:cpu=100000000,memory=1073741824000000000"


@pytest.mark.parametrize(
    "name", ["db", "web"], ids=["before one without a trial", "after one without a trial"]
)
def test_a_controller_without_a_trial_does_not_hide_the_trial_of_another(name):
    """The replacement has the second of the eviction: creation times have no fraction."""
    asked, result = run(two_workloads(NOW), after_evictions(**{name: 2}), now=NOW + timedelta(seconds=30))
    trials = result.state.eviction_limits.trials
    assert (trials[f"StatefulSet/shop/{name}"].ineffective, len(trials)) == (3, 2)
    assert trials[f"StatefulSet/shop/{name}"].paused_until == NOW + timedelta(seconds=30, hours=1)
    assert [event.object for event in result.events if event.reason == "EvictionFruitless"] == [
        f"shop/{name}"
    ]
    assert not [pod_name for _, pod_name in asked if pod_name.startswith(name)]
    assert evictions(asked) != []


@pytest.mark.parametrize(
    ("created", "changed", "want"),
    [
        pytest.param(timedelta(seconds=-1), "1Gi", 1, id="a pod from before the eviction is no replacement"),
        pytest.param(timedelta(), "1Gi", 2, id="one of the same second is"),
        pytest.param(timedelta(seconds=9), "1Gi", 2, id="one from later is"),
        pytest.param(timedelta(), "4Gi", 0, id="a changed one clears the count"),
    ],
)
def test_a_replacement_is_compared_from_the_second_of_the_eviction_on(created, changed, want):
    pods = [pod("db-0", memory=changed, created=NOW + created), pod("db-1")]
    trial = after_evictions(db=1).eviction_limits.trials[BASE]
    after = evaluate_trial(trial, pods, NOW + timedelta(seconds=30), EvictionLimitSettings())
    assert (after.ineffective, after.paused_until) == (want, None)
    assert (after.evicted_at is not None) is (created < timedelta())


def test_without_a_limit_or_an_eviction_no_trial_is_evaluated():
    trial = after_evictions(db=2).eviction_limits.trials[BASE]
    replaced = [pod("db-0", created=NOW + MINUTE)]
    assert evaluate_trial(trial, replaced, NOW + MINUTE, EvictionLimitSettings(max_ineffective=None)) == trial
    assert evaluate_trial(EvictionTrial(), replaced, NOW, EvictionLimitSettings()) == EvictionTrial()


@pytest.mark.parametrize(
    ("settings_of", "live", "ages", "want"),
    [
        pytest.param({}, 1000, (), 10, id="ten a minute"),
        pytest.param({}, 30, (), 3, id="a tenth of the pods, if that is less"),
        pytest.param({}, 3, (), 1, id="at least one"),
        pytest.param({}, 1000, (59, 1), 8, id="those of the last minute count"),
        pytest.param({}, 1000, (60, 61), 10, id="older ones do not"),
        pytest.param({}, 3, (1, 1, 1), 0, id="never less than none"),
        pytest.param({"max_share_per_minute": None}, 3, (), 10, id="the share switched off"),
        pytest.param({"max_evictions_per_minute": None}, 1000, (), 100, id="the number switched off"),
        pytest.param(
            {"max_evictions_per_minute": None, "max_share_per_minute": None}, 3, (1,) * 50, None, id="both"
        ),
    ],
)  # fmt: skip
def test_evictions_left_in_this_minute(settings_of, live, ages, want):
    state = EvictionLimits(evictions=tuple(NOW - timedelta(seconds=age) for age in ages))
    assert evictions_left(state, live, NOW, EvictionLimitSettings(**settings_of)) == want


def test_the_state_of_the_limits_ends_with_what_it_is_about():
    fresh, old = NOW - timedelta(minutes=59), NOW - timedelta(hours=1)
    state = EvictionLimits(
        evictions=(NOW - timedelta(seconds=60), NOW - timedelta(seconds=59)),
        trials={
            "alive": EvictionTrial(ineffective=1),
            "just evicted": EvictionTrial(evicted_at=fresh),
            "gone": EvictionTrial(evicted_at=old),
            "never": EvictionTrial(ineffective=1),
        },
        backoffs={"a": EvictionBackoff(until=NOW), "b": EvictionBackoff(until=NOW)},
    )
    kept = drop_expired(state, {"b"}, {"alive"}, NOW)
    assert kept.evictions == (NOW - timedelta(seconds=59),)
    assert set(kept.trials) == {"alive", "just evicted"}
    assert set(kept.backoffs) == {"b"}


def test_the_defaults_of_the_limits():
    limits = {
        "max_evictions_per_minute": 10,
        "max_share_per_minute": 0.1,
        "max_missing_per_controller": 1,
        "max_ineffective": 3,
        "ineffective_pause_seconds": 3600,
        "backoff_seconds": 60,
        "max_backoff_seconds": 600,
    }
    assert msgspec.structs.asdict(EvictionLimitSettings()) == limits
    off = {name: None for name in limits if name.startswith("max_") and name != "max_backoff_seconds"}
    assert msgspec.structs.asdict(NO_EVICTION_LIMITS) == limits | off | {"backoff_seconds": 0}
    assert msgspec.structs.asdict(UpdaterSettings()) == {
        "min_replicas": 2,
        "eviction_tolerance": 0.5,
        "min_change": 0.1,
        "lifetime_seconds": 43_200,
        "evict_after_oom_seconds": 600,
        "skips_budget_in_place": False,
        "ignored_namespaces": (),
        "eviction_limits": EvictionLimitSettings(),
    }
