"""A process holds nothing of objects that are gone, in any of its components.

Each round creates objects of every kind under new names, lets all components work on them, deletes them and lets
time pass. A container that grows with every round keeps something of each deleted object.
"""

from collections import Counter
from collections.abc import Iterator

from tests.scenarios.whole_process import Objects, Process, play
from trimtab.cluster.transport import Request
from trimtab.model.core.objects import ObjectReference

OBJECTS = 8
"""Applications per round, each with several pods, HPAs and VPAs. A leak adds an element or more for each of them."""
ROUNDS = 3

BOUNDED = {
    "._reduce._": "texts of pods, shared and bounded by size (tests/unit/operator/pods/test_memory.py)",
    ".reduce._": "the same, by way of the resource that is cached",
}
"""Parts of the paths of containers that may grow, and why."""


async def live(process: Process, number: int) -> Counter[str]:
    """Play one round; return the sizes after it."""
    objects = Objects(process, [f"r{number}-{index}" for index in range(OBJECTS)])
    await objects.create()
    for _ in range(4):
        await process.step()
    process.metrics.hang.add("external.metrics.k8s.io")
    await process.step()
    await delete_while_they_are_written(process, objects)
    process.metrics.hang.clear()
    # Longer than everything that is kept for a time: read owners, events, and the history of a short window.
    for _ in range(24):
        await process.step(600)
    # Old events are forgotten when a new one is recorded.
    about = ObjectReference(kind="Namespace", name="kept", namespace="kept")
    process.runtime.events.recorder("test").event(about, "Normal", "Lives", "one more round")
    return process.sizes()


async def delete_while_they_are_written(process: Process, objects: Objects) -> None:
    """Delete the objects while targets are read and scales and statuses are written."""
    under_way: set[str] = set()

    def slow_scales(request: Request) -> float:
        if not request.path.endswith(("/scale", "/status")):
            return 0.0
        under_way.add(request.path)
        return 5.0

    process.line.answers_after = slow_scales
    for namespace, name in process.metrics.usage:
        process.metrics.use(namespace, name, cpu="10m")
    for _ in range(600):
        await process.clock.sleep(0.5)
        if len(under_way) > OBJECTS:
            break
    await objects.delete()
    await process.step()
    process.line.answers_after = lambda _: 0.0
    assert len(under_way) > OBJECTS


def grown(before: Counter[str], after: Counter[str]) -> Iterator[str]:
    for path, size in sorted(after.items()):
        if size - before[path] >= OBJECTS / 2 and not any(part in path for part in BOUNDED):
            yield f"{path}: {before[path]} -> {size}"


def test_no_container_grows_with_objects_that_are_gone():
    async def scenario(process: Process) -> None:
        # The checkpoints of the last VPA are kept, so there is always one.
        await Objects(process, ["kept"]).create()
        sizes = [await live(process, number) for number in range(ROUNDS)]
        assert len(sizes[-1]) > 300, "the containers of the process are not found any more"
        assert "\n".join(grown(sizes[-2], sizes[-1])) == ""

    play(scenario)
