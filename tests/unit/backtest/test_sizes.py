"""A simulated VPA recommends what the recommender recommends, and usage is compared with that."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import START_NS, Load, Recommender, member
from trimtab.backtest import Model, ModelError, Trace
from trimtab.backtest.sizes import SizeCandidate, run_sizes
from trimtab.model.times import SECOND_NS

MIB = 2**20
START = START_NS / SECOND_NS
LOADS = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 4000)), min_size=2, max_size=12)
EACH_MINUTE = Model(sync_period=60)


def usage(cpu, memory=None, container=""):
    """Return a trace with values of each minute, in millicores and MiB."""
    prefix = f"{container}/" if container else ""
    columns = {f"{prefix}cpu": list(cpu)}
    if memory is not None:
        columns[f"{prefix}memory"] = [amount * MIB * 1000 for amount in memory]
    return Trace([START + 60 * minute for minute in range(len(cpu))], columns)


def play(trace, *, model=EACH_MINUTE, policies=()):
    *_, (_, results) = run_sizes(SizeCandidate("base", vpa("base", policies=policies)), trace, model)
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
    assert (found["app/cpu"].target, found["app/memory"].target) == (targets[-1][0], targets[-1][1] * 1000)
    each_cpu = [target for target, _ in targets]
    assert (found["app/cpu"].lowest, found["app/cpu"].highest) == (min(each_cpu), max(each_cpu))
    changed = [
        target for number, target in enumerate(each_cpu) if not number or each_cpu[number - 1] != target
    ]
    assert [target for _, target in results.targets["app/cpu"]] == changed


def test_pods_share_the_load_evenly():
    single = play(usage([300] * 30, [400] * 30)).figures.sizes
    crowd = play(usage([3000] * 30, [4000] * 30), model=Model(sync_period=60, replicas=10)).figures.sizes
    assert {name: size.target for name, size in crowd.items()} == {
        name: size.target for name, size in single.items()
    }
    assert crowd["cpu"].idle == pytest.approx(10 * single["cpu"].idle)


def test_usage_is_compared_with_the_target_that_was_recommended_before():
    steady = play(usage([500] * 60)).figures.sizes["cpu"]
    room = (steady.target - 500) / 1000
    assert room > 0
    assert (steady.above_target, steady.short) == (0.0, 0.0)
    assert steady.idle == pytest.approx(room * 59 / 60)  # the first sample has no target yet


def test_a_peak_is_above_the_target_until_the_target_follows():
    quiet = play(usage([500] * 60)).figures.sizes["cpu"]
    peak = play(usage([500] * 60 + [2000])).figures.sizes["cpu"]
    assert peak.above_target == pytest.approx(1 / 60)
    assert peak.short == pytest.approx((2000 - quiet.target) / 1000 / 60)


def test_a_gap_is_neither_a_sample_nor_compared():
    whole, gap = play(usage([500] * 9)).figures, play(usage([500, *[None] * 7, 500])).figures
    assert gap.sizes["cpu"].target == whole.sizes["cpu"].target
    assert gap.sizes["cpu"].idle < whole.sizes["cpu"].idle
    assert gap.syncs == whole.syncs == 9


def test_policies_cap_the_target():
    capped = play(
        usage([3000] * 9), policies=[{"containerName": "*", "maxAllowed": {"cpu": "1"}}]
    ).figures.sizes["cpu"]
    assert (capped.target, capped.above_target) == (1000, 1.0)


def test_a_container_in_mode_off_has_no_target():
    results = play(usage([500] * 9), policies=[{"containerName": "*", "mode": "Off"}])
    assert results.figures.sizes["cpu"].target is None
    assert results.figures.rows() == {"cpu: target": "none"}
    assert results.targets == {"cpu": []}


def test_the_figures_have_units_that_people_read():
    rows = play(usage([500] * 61, [1024] * 61), model=Model(sync_period=60, replicas=1)).figures.rows()
    assert rows["cpu: target"].endswith("m")
    assert rows["memory: unused of target"].endswith(" GiB-hours")
    assert rows["memory: target"].endswith("GiB")


@pytest.mark.parametrize(
    ("columns", "replicas", "complaint"),
    [
        pytest.param(["requests"], 1, "needs columns such as cpu and memory", id="no usage"),
        pytest.param(
            ["cpu", "main/cpu"], 1, "each once; its columns are cpu, main/cpu", id="a container twice"
        ),
        pytest.param(["cpu"], 0, "set replicas to 1 or more", id="no pods"),
    ],
)
def test_what_does_not_fit_is_named(columns, replicas, complaint):
    trace = Trace([START, START + 60], {column: [1, 1] for column in columns})
    with pytest.raises(ModelError, match=complaint):
        play(trace, model=Model(replicas=replicas))
