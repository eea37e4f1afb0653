"""Flags of the recommender reach its numbers: each changes what it names, and nothing else."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import pod, vpa
from tests.unit.decide.vertical.usage_builders import DAY_NS, Load, Recommender
from trimtab.cli.commands.run import run
from trimtab.cli.vpa_flags import with_upstream_flags
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.input.oom import OOM
from trimtab.decide.vertical.input.usage import record_oom
from trimtab.decide.vertical.recommend.recommender import recommend_vpas
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.objects import Node
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.quantity import Quantity
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.estimation import (
    Estimation,
    aggregation_config,
    post_processing,
    recommender_settings,
)

GIB = 2**30
CPU = ("lower cpu", "target cpu", "upper cpu")
MEMORY = ("lower memory", "target memory", "upper memory")


def settings_of(*flags: str) -> Settings:
    return Settings.of(**with_upstream_flags(run.make_context("run", list(flags)).params))


def recommended(*flags: str, annotations: dict[str, str] | None = None) -> dict[str, Quantity]:
    """Recommend for a pod that uses more each quarter of an hour for three days, then is killed for memory."""
    settings = settings_of(*flags)
    plain = vpa("base")
    metadata = msgspec.structs.replace(plain.metadata, annotations=annotations or {})
    recommender = Recommender([msgspec.structs.replace(plain, metadata=metadata)])
    recommender.state = ClusterState(
        aggregation_config(settings.estimation), per_vpa_config=True, block_columns=64
    )
    recommender.state.add_or_update_vpa(recommender.vpas[0], Selector.parse("app=db"))
    recommender.observe([pod("db-0")])
    for step in range(3 * 96):
        recommender.scrape({"db-0": Load(200 + 7 * step, GIB + step * 2**24)}, minutes=15)
    kill = OOM("shop", "db-0", "app", recommender.now_ns, 6 * GIB)
    assert record_oom(recommender.state, kill, recommender.now_ns) is None
    (found,) = recommend_vpas(
        recommender.state,
        recommender.state.vpas.values(),
        recommender_settings(settings.estimation),
        post_processing(settings.estimation),
        recommender.now_ns,
    )
    assert found.status.recommendation is not None
    (container,) = found.status.recommendation.container_recommendations
    bounds = {"lower": container.lower_bound, "target": container.target, "upper": container.upper_bound}
    return {
        f"{bound} {name}": amount for bound, amounts in bounds.items() for name, amount in amounts.items()
    }


@pytest.mark.parametrize(
    ("flag", "wanted"),
    [
        ("--target-cpu-percentile=0.2", {"target cpu": "-"}),
        ("--recommendation-lower-bound-cpu-percentile=0.9", {"lower cpu": "+"}),
        ("--recommendation-upper-bound-cpu-percentile=0.2", {"upper cpu": "-"}),
        ("--target-memory-percentile=0.1", {"target memory": "-"}),
        ("--recommendation-lower-bound-memory-percentile=0.1", {"lower memory": "-"}),
        ("--recommendation-upper-bound-memory-percentile=0.1", {"upper memory": "-"}),
        ("--recommendation-margin-fraction=0", dict.fromkeys(CPU + MEMORY, "-")),
        ("--confidence-interval-cpu=100h", {"lower cpu": "-", "upper cpu": "+"}),
        ("--confidence-interval-memory=100h", {"lower memory": "-", "upper memory": "+"}),
        ("--cpu-histogram-decay-half-life=1h", dict.fromkeys(CPU, "+")),
        ("--memory-histogram-decay-half-life=1000h", {"lower memory": "-"}),
        ("--memory-aggregation-interval=1h", dict.fromkeys(MEMORY, "-")),
        ("--oom-bump-up-ratio=3", dict.fromkeys(MEMORY, "+")),
        ("--oom-min-bump-up-bytes=9000000000", dict.fromkeys(MEMORY, "+")),
        ("--pod-recommendation-min-cpu-millicores=90000", dict.fromkeys(CPU, "+")),
        ("--pod-recommendation-min-memory-mb=900000", dict.fromkeys(MEMORY, "+")),
        ("--container-recommendation-max-allowed-cpu=1m", dict.fromkeys(CPU, "-")),
        ("--container-recommendation-max-allowed-memory=1Mi", dict.fromkeys(MEMORY, "-")),
        ("--round-cpu-millicores=100000", dict.fromkeys(CPU, "+")),
        ("--round-memory-bytes=1000000000000", dict.fromkeys(MEMORY, "+")),
    ],
)
def test_a_flag_changes_the_amounts_that_it_names(flag, wanted):
    """None of them existed, though the page for those who move promised them."""
    before, after = recommended(), recommended(flag)
    changed = {
        name: "+" if after[name] > before[name] else "-" for name in before if after[name] != before[name]
    }
    assert changed == wanted


def test_memory_can_be_written_with_two_decimals():
    exact, shown = (recommended(*flags)["target memory"].as_float() for flags in ([], ["--humanize-memory"]))
    assert shown != exact
    assert shown == pytest.approx(round(exact / GIB, 2) * GIB)


@pytest.mark.parametrize(
    ("flags", "is_whole"),
    [
        ([], True),
        (["--cpu-integer-post-processor-enabled=false"], False),
        (["--compat=vpa-1.8"], False),
        (["--compat=vpa-1.8", "--cpu-integer-post-processor-enabled"], True),
    ],
)
def test_whole_cores_are_given_where_a_vpa_asks_and_the_flag_is_set(flags, is_whole):
    asked = {"vpa-post-processor.kubernetes.io/app_integerCPU": "true"}
    amount = recommended(*flags, annotations=asked)["target cpu"]
    assert ("m" not in str(amount)) is is_whole


def test_history_lasts_as_many_intervals_as_asked():
    state = ClusterState(aggregation_config(settings_of("--memory-aggregation-interval-count=2").estimation))
    recommender = Recommender([vpa("base")])
    recommender.state = state
    state.add_or_update_vpa(recommender.vpas[0], Selector.parse("app=db"))
    recommender.observe([pod("db-0")])
    recommender.scrape({"db-0": Load(100, GIB)})
    (aggregate,) = state.aggregates.values()
    assert not aggregate.is_expired(recommender.now_ns + DAY_NS)
    assert aggregate.is_expired(recommender.now_ns + 2 * DAY_NS)


@pytest.mark.parametrize(
    ("flag", "complaint"),
    [
        ("--target-cpu-percentile=90", "0 to 1"),
        ("--target-cpu-percentile=1.001", "0 to 1"),
        ("--target-memory-percentile=-0.001", "0 to 1"),
        ("--confidence-interval-cpu=0s", "more than 0"),
        ("--cpu-histogram-decay-half-life=0s", "more than 0"),
        ("--memory-aggregation-interval-count=0", "1 or more"),
        (
            "--container-recommendation-max-allowed-cpu=lots",
            "--container-recommendation-max-allowed-cpu=lots",
        ),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_at_the_start(flag, complaint):
    settings = settings_of(flag)
    with pytest.raises(ValueError, match=complaint):
        Estimation.from_settings(settings.estimation)


@pytest.mark.parametrize(
    "flag",
    [
        "--target-cpu-percentile=0",
        "--target-cpu-percentile=1",
        "--memory-aggregation-interval-count=1",
        "--cpu-histogram-decay-half-life=1s",
    ],
)
def test_a_bound_itself_is_allowed(flag):
    Estimation.from_settings(settings_of(flag).estimation)


@pytest.mark.parametrize(("rules", "rooms"), [(Rules.TRIMTAB, 2), (Rules.VPA_1_8, 0)])
def test_recommendations_fit_the_nodes_there_are_now_unless_as_upstream(rules, rooms):
    nodes = [
        wire.convert(
            {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}}, Node
        )
        for name in ("a", "b")
    ]
    view: Any = SimpleNamespace(nodes=nodes, rules=rules)
    estimation = Estimation.from_settings(Settings().estimation)
    assert len(estimation.post_processing_for(view).rooms) == rooms
