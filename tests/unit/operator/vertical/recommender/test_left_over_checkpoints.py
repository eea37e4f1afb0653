"""Checkpoints of containers that the pods of a VPA lost are deleted when no recommender would load them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.clock import VirtualClock
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.meta import NamespacedName, ObjectMeta
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpointSpec
from trimtab.operator.vertical.recommender.checkpoint_collector import CheckpointCollector
from trimtab.operator.vertical.recommender.checkpoint_objects import OwnedCheckpoint
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates

BASE = NamespacedName("shop", "base")
WINDOW = timedelta(days=8)


@dataclass
class World:
    """A recommender with one VPA whose pods have the container `app`."""

    has_vpa: bool = True
    has_pods: bool = True
    is_complete: bool = True
    expires: bool = True

    def __post_init__(self) -> None:
        recommender = Recommender(
            [vpa("base")] if self.has_vpa else [], rules=Rules.TRIMTAB if self.expires else Rules.VPA_1_8
        )
        if self.has_pods:
            recommender.observe([member("db-0")])
            recommender.scrape({"db-0": Load(200, 2**30)})
        self.clock = VirtualClock()
        owner: Any = SimpleNamespace(count=1, held=lambda: (0,), share=lambda _: 0)
        states = ShardedClusterStates(lambda: recommender.state, owner)
        states.sync_shards()
        client: Any = SimpleNamespace(clock=self.clock)
        store: Any = None
        self.collector = CheckpointCollector(
            client, states, store, lambda vpa: self.is_complete and vpa == BASE
        )

    def deletes(self, container: str, last_sample: datetime | None) -> bool:
        """Return whether the checkpoint of a container is deleted."""
        return self.collector.is_left_over(_checkpoint(container, last_sample))


def _checkpoint(container: str, last_sample: datetime | None) -> OwnedCheckpoint:
    status = msgspec.structs.replace(OwnedCheckpoint().status, last_sample_start=last_sample)
    spec = VerticalPodAutoscalerCheckpointSpec(vpa_object_name="base", container_name=container)
    metadata = ObjectMeta(name=f"base-{container}", namespace="shop")
    return OwnedCheckpoint(metadata=metadata, spec=spec, status=status)


@example(World(has_pods=False), "gone", WINDOW)
@example(World(is_complete=False), "gone", WINDOW)
@example(World(expires=False), "gone", WINDOW)
@example(World(has_vpa=False), "gone", WINDOW)
@example(World(), "gone", WINDOW)
@example(World(), "gone", WINDOW - timedelta(seconds=1))
@example(World(), "app", WINDOW)
@given(
    world=st.builds(World, *[st.booleans()] * 4),
    container=st.sampled_from(["app", "gone"]),
    age=st.none() | st.sampled_from([timedelta(), WINDOW - timedelta(seconds=1), WINDOW, 3 * WINDOW]),
)
def test_nothing_but_the_expired_history_of_a_lost_container_is_deleted(
    world: World, container: str, age: timedelta | None
) -> None:
    """A VPA without pods, or without its history loaded, tells nothing about its containers."""
    is_left_over = container == "gone" and age is not None and age >= WINDOW
    is_sure = world.has_vpa and world.has_pods and world.is_complete and world.expires
    last_sample = None if age is None else world.clock.now() - age
    assert world.deletes(container, last_sample) is (is_left_over and is_sure)
