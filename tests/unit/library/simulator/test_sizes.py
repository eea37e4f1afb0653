"""A simulated VPA recommends what the recommender recommends, and its pods live by that."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import START_NS, Load, Recommender, member
from trimtab.library.simulator import Model, ModelError, Trace, read_trace
from trimtab.library.simulator.life import settings_of
from trimtab.library.simulator.sizes import SizeCandidate, run_sizes
from trimtab.model.times import SECOND_NS

MIB = 2**20
START = START_NS / SECOND_NS
LOADS = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 4000)), min_size=2, max_size=12)
AT_ONCE = {"metrics_delay": 0.0, "metrics_period": 60.0}
ROOMY = {"requests": {"cpu": 4000, "memory": 4 * 2**30 * 1000}}


def usage(cpu, memory=None, container=""):
    """Return a trace with values of each minute, in millicores and MiB."""
    prefix = f"{container}/" if container else ""
    columns = {f"{prefix}cpu": list(cpu)}
    if memory is not None:
        columns[f"{prefix}memory"] = [amount * MIB * 1000 for amount in memory]
    return Trace([START + 60 * minute for minute in range(len(cpu))], columns)


def play(trace, *, policies=(), mode="Recreate", **model):
    candidate = SizeCandidate("base", (vpa("base", policies=policies, mode=mode),), settings_of())
    *_, (_, results) = run_sizes(candidate, trace, Model(**{**AT_ONCE, **model}))
    return results


@given(LOADS)
@settings(max_examples=20, deadline=None)
def test_targets_are_those_of_the_recommender(loads):
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    recommender.now_ns -= 60 * SECOND_NS  # the first sample is as old as the trace
    targets = []
    for millicores, mebibytes in loads:
        recommender.scrape({"db-0": Load(millicores, mebibytes * MIB)})
        targets.append([recommender.targets(resource)["base"] or 0 for resource in ("cpu", "memory")])
    cpu, memory = zip(*loads, strict=True)
    results = play(usage(cpu, memory, "app"))
    found = results.figures.sizes
    assert (found["cpu"].target, found["memory"].target) == (targets[-1][0], targets[-1][1] * 1000)
    each_cpu = [target for target, _ in targets]
    assert (found["cpu"].lowest, found["cpu"].highest) == (min(each_cpu), max(each_cpu))
    changed = [
        target for number, target in enumerate(each_cpu) if not number or each_cpu[number - 1] != target
    ]
    assert [target for _, target in results.targets["cpu"]] == changed


def test_pods_share_the_load_evenly():
    single = play(usage([300] * 30, [400] * 30)).figures
    crowd = play(usage([3000] * 30, [4000] * 30), replicas=10).figures
    assert crowd.sizes == single.sizes
    assert crowd.outcomes.used["cpu"] == pytest.approx(10 * single.outcomes.used["cpu"], rel=1e-3)


def test_requests_are_compared_with_usage():
    found = play(usage([500] * 61, [1024] * 61), **ROOMY, prices={"cpu": 2.0, "memory": 1.0}).figures
    outcomes = found.outcomes
    assert outcomes.used == pytest.approx({"cpu": 0.5, "memory": 2**30})
    assert outcomes.wasted == pytest.approx({"cpu": 3.5, "memory": 3 * 2**30})
    assert outcomes.starved == {"cpu": 0.0, "memory": 0.0}
    assert found.cost == pytest.approx(4 * 2.0 + 4 * 1.0)


def test_pods_that_use_more_than_they_request_are_resized():
    tight = {"requests": {"cpu": 100}, "replicas": 2}
    resized = play(usage([1000] * 120), **tight, mode="InPlaceOrRecreate")
    assert resized.figures.outcomes.resizes == 2
    assert resized.figures.outcomes.evictions == 0
    assert resized.figures.outcomes.starved_minutes[""] < 2 * 20
    evicted = play(usage([1000] * 120), **tight)
    assert (evicted.figures.outcomes.resizes, evicted.figures.outcomes.evictions) == (0, 2)
    assert evicted.figures.outcomes.unavailable_pod_minutes == pytest.approx(1.0)
    recommended = evicted.figures.sizes["cpu"].target
    assert {pod.size[0].cpu for pod in evicted.life.workload.pods} <= {
        target for _, target in evicted.targets["cpu"]
    }
    assert recommended > 500


def test_a_single_pod_stays_and_the_reason_is_told():
    alone = play(usage([1000] * 120), requests={"cpu": 100}).figures
    assert alone.unchanged == {"db-0": "its group is unknown or below the minimum of replicas"}
    assert alone.outcomes.starved_minutes[""] == pytest.approx(119)


def test_a_gap_is_no_sample():
    whole, gap = play(usage([500] * 9)).figures, play(usage([500, *[None] * 7, 500])).figures
    assert gap.sizes["cpu"].target == whole.sizes["cpu"].target
    assert gap.outcomes.used["cpu"] < whole.outcomes.used["cpu"]
    assert gap.syncs == whole.syncs == 9


def test_policies_cap_the_target():
    capped = play(usage([3000] * 9), policies=[{"containerName": "*", "maxAllowed": {"cpu": "1"}}])
    assert capped.figures.sizes["cpu"].target == 1000


def test_a_container_in_mode_off_has_no_target():
    results = play(usage([500] * 9), policies=[{"containerName": "*", "mode": "Off"}])
    assert results.figures.rows()["cpu: target"] == "none"
    assert results.targets == {"cpu": []}


def test_the_figures_have_units_that_people_read():
    rows = play(usage([500] * 61, [1024] * 61)).figures.rows()
    assert rows["cpu: target"] == "587m"
    assert rows["memory: wasted"].endswith(" GiB-hours")
    assert rows["starved"].endswith(" pod-minutes")


def test_recorded_pods_have_their_own_usage_and_labels():
    rows = [f"{60 * minute},1,100m,leader,follower" for minute in range(30)]
    titles = "time,web-0/main/cpu,web-1/main/cpu,web-0/label/role,web-1/label/role"
    found = play(read_trace([titles, *rows], "day.csv"), requests={"cpu": 500}, mode="Off")
    assert found.figures.outcomes.used["cpu"] == pytest.approx(1.1 * 29 / 60)
    assert found.figures.outcomes.starved_minutes == {"leader": pytest.approx(29)}
    assert {pod.labels["role"] for pod in found.life.workload.pods} == {"leader", "follower"}


@pytest.mark.parametrize(
    ("columns", "replicas", "complaint"),
    [
        pytest.param(["requests"], 1, "needs columns such as cpu and memory", id="no usage"),
        pytest.param(
            ["cpu", "main/cpu"], 1, "each once; its columns are cpu, main/cpu", id="a container twice"
        ),
        pytest.param(["cpu"], 0, "set replicas to 1 or more", id="no pods"),
        pytest.param(["cpu", "a/main/cpu"], 1, "in total and usage per pod", id="totals and pods"),
    ],
)
def test_what_does_not_fit_is_named(columns, replicas, complaint):
    trace = Trace([START, START + 60], {column: [1, 1] for column in columns})
    with pytest.raises(ModelError, match=complaint):
        play(trace, replicas=replicas)
