"""The updater's metrics tell how many pods and VPAs a loop found, and what became of each action."""

from collections import Counter as Tally
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import member
from trimtab.decide.vertical.update.actions import ActionResult, Evict, Resize
from trimtab.decide.vertical.update.resize.plan import ResizePlan
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.vertical.metrics import UpdaterMetrics
from trimtab.operator.vertical.updater.actuator import Performed
from trimtab.operator.vertical.updater.update_counts import count_loop

MODES = {"a": "Recreate", "b": "InPlaceOrRecreate", "c": "Recreate", "d": "Off"}
"""The update mode of each VPA."""
SIZES = {0: "0", 1: "0", 2: "1", 3: "1", 4: "2", 7: "2", 8: "3"}
"""Upstream's label for a number of pods."""
NO_VPA = ""
"""The name on the end of a boost that no VPA gives any more."""
POD = member("db-0")
UNTRIED = {ActionResult.DRY_RUN, ActionResult.RATE_LIMITED}


@dataclass
class Loop:
    """The pods of each VPA, the VPAs that exist, and the actions: VPA, whether it evicts, result."""

    sizes: dict[str, int]
    existing: set[str]
    actions: list[tuple[str, bool, ActionResult]] = field(default_factory=list)


NAMES = st.sampled_from(sorted(MODES))
ACTIONS = st.tuples(
    st.sampled_from([*sorted(MODES), NO_VPA]), st.booleans(), st.sampled_from(sorted(ActionResult))
)
LOOPS = st.builds(
    Loop,
    sizes=st.dictionaries(NAMES, st.sampled_from(sorted(SIZES)[1:])),
    existing=st.sets(NAMES, min_size=2),
    actions=st.lists(ACTIONS, max_size=12),
)


class World:
    """The metrics of an updater, read by name and labels."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = UpdaterMetrics(self.registry)

    def count(self, loop: Loop) -> None:
        def mode_of(name: NamespacedName) -> str | None:
            return MODES[name.name] if name.name in loop.existing else None

        done = [
            Performed(
                Evict(POD, vpa(name), "") if is_eviction else Resize(POD, vpa(name), ResizePlan(), ""), result
            )
            for name, is_eviction, result in loop.actions
        ]
        count_loop(self.metrics, {f"shop/{name}": size for name, size in loop.sizes.items()}, done, mode_of)

    def read(self, metric: str, *, with_zeros: bool = False) -> dict[tuple[str, ...], float]:
        """Return the values of a metric by the values of its labels, in the order of upstream's."""
        order = ("vpa_size_log2", "update_mode", "vpa_name", "vpa_namespace", "reason")
        return {
            tuple(sample.labels[label] for label in order if label in sample.labels): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == f"vpa_updater_{metric}_total" and (sample.value or with_zeros)
        }


@given(st.lists(LOOPS, min_size=1, max_size=3))
def test_gauges_describe_the_last_loop_alone(loops: list[Loop]) -> None:
    world = World()
    for loop in loops:
        world.count(loop)

    def sized(name: str) -> tuple[str]:
        return (SIZES[loop.sizes.get(name, 0)],)

    def labels(name: str) -> tuple[str, ...]:
        return (*sized(name), MODES[name] if name in loop.existing else "Recreate")

    tried = [action for action in loop.actions if action[0] != NO_VPA]
    evictions = [(name, result) for name, is_eviction, result in tried if is_eviction]
    resizes = [(name, result) for name, is_eviction, result in tried if not is_eviction]
    assert world.read("evictable_pods") == Tally(labels(name) for name, _ in evictions)
    assert world.read("in_place_updatable_pods") == Tally(sized(name) for name, _ in resizes)
    for gauge, names, labelled in (
        ("vpas_with_evictable_pods", {name for name, _ in evictions}, labels),
        ("vpas_with_evicted_pods", _done(evictions), labels),
        ("vpas_with_in_place_updatable_pods", {name for name, _ in resizes}, sized),
        ("vpas_with_in_place_updated_pods", _done(resizes), sized),
    ):
        assert world.read(gauge) == Tally(labelled(name) for name in names), gauge
    controlled = Tally[tuple[str, ...]]()
    for name, size in loop.sizes.items():
        if labels(name)[1] != "Off":
            controlled[labels(name)] += size
    assert world.read("controlled_pods") == controlled


def _done(actions: list[tuple[str, ActionResult]]) -> set[str]:
    return {name for name, result in actions if result is ActionResult.DONE}


@given(st.lists(LOOPS, min_size=1, max_size=4))
def test_counters_add_up_the_actions_of_vpas_that_still_exist(loops: list[Loop]) -> None:
    """Each action that was tried is counted once, by its result; a deleted VPA leaves no counter."""
    world = World()
    counted = Tally[tuple[str, bool, str]]()
    for loop in loops:
        world.count(loop)
        for key in [key for key in counted if key[0] != NO_VPA and key[0] not in loop.existing]:
            del counted[key]
        for name, is_eviction, result in loop.actions:
            if result not in UNTRIED:
                counted[name, is_eviction, _counter(is_eviction, result)] += 1
    found = Tally[tuple[str, bool, str]]()
    for is_eviction, name_at, metrics in (
        (True, 2, ("evicted_pods", "failed_eviction_attempts")),
        (
            False,
            1,
            ("in_place_updated_pods", "in_place_infeasible_skip_pods", "failed_in_place_update_attempts"),
        ),
    ):
        for metric in metrics:
            for labels, value in world.read(metric).items():
                reason = "/".join((metric, *labels[name_at + 2 :]))
                found[labels[name_at], is_eviction, reason] += int(value)
    assert found == counted


def _counter(is_eviction: bool, result: ActionResult) -> str:
    match is_eviction, result:
        case True, ActionResult.DONE:
            return "evicted_pods"
        case False, ActionResult.DONE:
            return "in_place_updated_pods"
        case False, ActionResult.INFEASIBLE:
            return "in_place_infeasible_skip_pods"
    return (
        f"{'failed_eviction_attempts' if is_eviction else 'failed_in_place_update_attempts'}/{result.value}"
    )


def test_counters_of_a_vpa_that_changes_pods_exist_before_its_first_action() -> None:
    """increase() misses the first event of a counter that begins with it."""
    world = World()
    world.count(Loop({"a": 4, "b": 1, "d": 2}, {"a", "b", "d"}))
    assert world.read("evicted_pods", with_zeros=True) == {
        ("2", "Recreate", "a", "shop"): 0,
        ("0", "InPlaceOrRecreate", "b", "shop"): 0,
    }
    for metric in ("in_place_updated_pods", "in_place_infeasible_skip_pods"):
        assert world.read(metric, with_zeros=True) == {("2", "a", "shop"): 0, ("0", "b", "shop"): 0}
