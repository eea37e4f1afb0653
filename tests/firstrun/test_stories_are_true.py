"""The five stories, looked at after 1, 10 and 40 virtual minutes: every line that `explain` prints is true.

At 60x a request of 5 ms takes the operator 0.3 s of the time that the stories run in. That is what differs from 1x,
and it is played in virtual time, so that a busy machine changes nothing.
"""

import json
import re
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.firstrun import truth, vertical_truth
from tests.support.cluster import as_admin
from trimtab.cli.stories import STORIES
from trimtab.cli.stories.stage import Stage
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.operator.horizontal.records import explain_page
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.explain import Explainer
from trimtab_lab.embedded import EmbeddedCluster

MINUTES = (1, 10, 40)
TRIES = 200
"""The world moves while the operator decides: a look counts if nothing changed meanwhile."""


class Late:
    """A transport on which every request takes a while."""

    def __init__(self, clock, inner, seconds):
        self._clock, self._inner, self._seconds = clock, inner, seconds

    async def request(self, request):
        await self._clock.sleep(self._seconds)
        return await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request):
        await self._clock.sleep(self._seconds)
        async with self._inner.stream(request) as stream:
            yield stream

    async def close(self):
        await self._inner.close()


def late_client(clock, cluster, seconds):
    """Return a client of the cluster whose requests take so long."""
    return Client(clock, Late(clock, as_admin(cluster.server), seconds), seed=2)


@dataclass(frozen=True)
class LateCluster:
    """A cluster that the operator reaches with such a client."""

    inner: EmbeddedCluster
    client: Client

    @property
    def side(self):
        return self.inner.side

    async def apply(self, *manifests):
        return await self.inner.apply(*manifests)


@asynccontextmanager
async def stories(clock, latency):
    """Put all stories up in one cluster, with the operator at work, as `trimtab up` does."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(EmbeddedCluster(clock, seed=1))
        late = LateCluster(cluster, late_client(clock, cluster, latency))
        programs = await Stage(clock, late).open(STORIES, stack)
        yield cluster, programs.horizontal


ROLES = "roles"


class SizeWatcher:
    """Looks at the VPAs of the last story, and remembers the usage of each role."""

    def __init__(self, clock, cluster):
        self.clock, self.cluster = clock, cluster
        self.usage = {}

    async def look(self):
        return await vertical_truth.look(self.cluster.client, ROLES, self.clock.now(), self.usage)

    async def check(self):
        """Check every line about both VPAs and every pod; the world must stand still meanwhile."""
        for _ in range(TRIES):
            before = await self.look()
            texts = await self._texts(before)
            after = await self.look()
            if (before.vpas, before.pods, before.checkpoints) == (after.vpas, after.pods, after.checkpoints):
                for text in texts:
                    vertical_truth.Lines(before, text).check()
                    for false in falsified_sizes(text):
                        assert not is_true(vertical_truth.Lines(before, false)), false
                return
            await self.clock.sleep(1)
        raise AssertionError("the sizes never stood still")

    async def _texts(self, sizes):
        explainer = Explainer(self.cluster.client, ROLES, Settings.of(feature_gates="AllAlpha=true"))
        try:
            found = [await explainer.vpa(vpa) for vpa in sizes.vpas]
            found += [await explainer.pod(pod) for pod in sizes.pods]
        finally:
            await explainer.close()
        return ["\n".join(one.lines) for one in found]


class Watcher:
    """Looks at the HPAs of all stories, and remembers what each asked for."""

    def __init__(self, clock, cluster, horizontal):
        self.clock, self.cluster, self.horizontal = clock, cluster, horizontal
        self.asked = {}
        self.found = []

    @property
    def keys(self):
        return [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in hpas()]

    async def look(self, key):
        """Return the world around one HPA, and remember what it asks for."""
        history = self.asked.setdefault(key, [])
        world = await truth.look(self.cluster.client, key, self.clock.now(), list(history))
        if world.measured() or world.total is not None:
            history.append((world.now.timestamp(), world.asks(), world.replicas))
        return world

    def _is_of(self, world, key):
        """Return whether the last decision is about that world: made since, or one that would only be repeated."""
        autoscaler = self.horizontal.hpas.named(*key)
        decided = autoscaler.records[-1].decision.now
        return decided >= world.now.timestamp() or autoscaler.standing is not None

    async def check(self, key):
        """Have the operator decide now, and check every line of what it says against the world it decided on."""
        for _ in range(TRIES):
            before = await self.look(key)
            await self.horizontal.step()
            page = explain_page(self.horizontal.hpas, "/".join(key))
            after = await self.look(key)
            if page is not None and self._is_of(before, key) and before.is_like(after):
                text = json.loads(page)["text"]
                truth.Lines(before, text).check()
                self.found.append((before, text))
                return text
            await self.clock.sleep(1)
        raise AssertionError(f"{key} never stood still")


def hpas():
    return [one for story in STORIES for one in story.objects() if one["kind"] == "HorizontalPodAutoscaler"]


def is_true(lines):
    try:
        lines.check()
    except AssertionError:
        return False
    return True


def falsified(text):
    """Yield the text with each of its numbers changed in turn: a checker that takes one of them checks nothing."""
    for number in re.finditer(r"(?<![-\w.])\d+(?:\.\d+)?(?![-\w.:])", text):
        if not text[: number.start()].endswith("ratio "):
            yield f"{text[: number.start()]}{float(number[0]) + 7:g}{text[number.end() :]}"


def falsified_sizes(text):
    """Yield an explanation of sizes with each of its amounts tripled in turn."""
    for number in re.finditer(r"\d+(?=m\b| MiB| samples?)", text):
        yield f"{text[: number.start()]}{int(number[0]) * 3 + 40}{text[number.end() :]}"


@pytest.mark.parametrize("latency", [0.005, 0.3], ids=["1x", "60x"])
def test_every_line_is_true(latency):
    clock = VirtualClock()

    async def main():
        told = {}
        async with stories(clock, latency) as (cluster, horizontal):
            watcher, started = Watcher(clock, cluster, horizontal), clock.monotonic()
            sizes = SizeWatcher(clock, cluster)
            for minute in MINUTES:
                while clock.monotonic() < started + minute * 60:
                    await clock.sleep(10)
                    for key in watcher.keys:
                        await watcher.look(key)
                    await sizes.look()
                told[minute] = [await watcher.check(key) for key in watcher.keys]
                await sizes.check()
        return told, watcher.found

    told, found = clock.run(main())
    for world, text in found:
        for false in falsified(text):
            assert not is_true(truth.Lines(world, false)), false
    shop = hpas().index(next(one for one in hpas() if one["metadata"]["name"] == "shop-by-label"))
    # The first story does not end: a Job that ran for half an hour let the workload shrink (F2).
    assert told[40][shop].startswith("AtMaximum: stays at 8")
    assert "\nnext: set selectionStrategy to OwnerReference" in told[40][shop]
