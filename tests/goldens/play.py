"""Plays the decisions of a group, and writes down what users see of each."""

import asyncio
import json
import re
import textwrap
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.goldens.cluster import Cluster, resource_of
from tests.goldens.decision import Decision, Group
from tests.goldens.programs import Log, Programs, Top
from trimtab.clock import VirtualClock
from trimtab.cluster.client import ListOptions
from trimtab.cluster.resource import CORE_EVENTS, PODS, Json
from trimtab.model.times import parse_time
from trimtab_lab.apiserver.server import Server

#: When the steps begin, so that times do not depend on how many objects are made before.
BEGINNING = 3600.0
SYNC, LOOP = timedelta(seconds=15), timedelta(seconds=60)
PLACE = "shop"
"""What the namespace of every decision is called in its text."""
WIDTH = 118
UNUSED = {"track", "window", "conditions", "events", "spec", "histogram", "cookie"}
"""Parts of a page that repeat other sections, or are drawn."""
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
UNTOLD = {"CustomResourceDefinition", "ReplicaSet"}
OF_PODS = {"template", "selector", "serviceName"}
TIMES = {"at", "since"}
VERSION = re.compile(r"(baseVersion=|based on version |operator-\d/|precondition \(|in record \()\d+")


def play(group: Group, decisions: list[Decision]) -> dict[str, str | Exception]:
    """Return the text of each decision by its file, or what it raised."""
    clock = VirtualClock()

    async def main() -> dict[str, str | Exception]:
        async with Server(clock, seed=1) as server:
            cluster = Cluster(clock, server, group)
            programs = Programs(clock, group, cluster)
            await cluster.open(decisions)
            await asyncio.sleep(BEGINNING - clock.monotonic())
            with Log() as log:
                await programs.start(server)
                stage = _Stage(clock, cluster, programs, log)
                await stage.play(decisions)
                await programs.close()
                return stage.texts

    return clock.run(main())


@dataclass
class _Stage:
    """A cluster, the programs on it, and their log."""

    clock: VirtualClock
    cluster: Cluster
    programs: Programs
    log: Log
    texts: dict[str, str | Exception] = field(default_factory=dict)

    async def play(self, decisions: list[Decision]) -> None:
        began, period = self.clock.now(), SYNC if decisions[0].group.is_horizontal else LOOP
        for number in range(max(len(decision.loops) for decision in decisions)):
            living = [decision for decision in decisions if decision.path not in self.texts]
            for decision in living:
                await self._try(decision, self.cluster.happen(decision.loops[number], decision))
            await asyncio.sleep((began + (number + 1) * period - self.clock.now()).total_seconds())
            await self.programs.step()
            log, top = list(self.log.lines), await self.programs.top()
            ended = [decision for decision in living if len(decision.loops) == number + 1]
            # All at the same virtual moment, so that no decision depends on how many others there are.
            all_shown = [
                _Shown(self, decision, began) for decision in ended if decision.path not in self.texts
            ]
            await asyncio.gather(*(self._try(shown.decision, shown.show(log, top)) for shown in all_shown))
            for decision in ended:
                about = decision.objects[-1]
                name = about["metadata"]["name"]
                await self.cluster.user.delete(resource_of(about), name, decision.namespace)
            for decision in living:
                if decision.path not in self.texts:
                    await self._try(decision, self.cluster.settle(decision.namespace))

    async def _try(self, decision: Decision, part: Awaitable[None]) -> None:
        """Do a part of a decision. What it raises stands in the place of its text, and ends it."""
        try:
            await part
        except Exception as error:  # noqa: BLE001 - told in the place of the text
            self.texts[decision.path] = error


class _Shown:
    """What users see of one decision."""

    def __init__(self, stage: _Stage, decision: Decision, began: datetime) -> None:
        self._stage, self.decision, self._began = stage, decision, began
        self._about = decision.objects[-1]
        self._named = self._about["metadata"]["name"]

    async def show(self, log: list[str], top: Top) -> None:
        """Write the whole text down."""
        stage, place = self._stage, self.decision.namespace
        found = await stage.cluster.user.get(resource_of(self._about), self._named, place)
        status = found.get("status", {})
        sections = {
            "given": self._given(),
            "conditions": [self._condition(condition) for condition in status.get("conditions", ())],
            "status": _shown(
                {key: value for key, value in status.items() if key not in ("conditions", "memory")}
            ),
            "events": await self._events(),
            "log": [line for line in log if place in line],
            **(await (self._replicas() if self.decision.group.is_horizontal else self._sizes())),
            "top -o wide": top.lines(place, PLACE),
            "dashboard": _shown(self._timed(_without(await self._page(), UNUSED))),
        }
        lines = [f"{self.decision.sentence}."]
        for name, body in sections.items():
            lines += ["", f"== {name}", *(line.rstrip() for line in body)]
        text = UID.sub("UID", "\n".join(lines)).replace(place, PLACE)
        stage.texts[self.decision.path] = VERSION.sub(r"\1N", text) + "\n"

    def _given(self) -> list[str]:
        group, lines = self.decision.group, []
        if not group.is_horizontal:
            lines.append(f"components: {', '.join(group.components)}")
        lines += [f"setting {name}: {value}" for name, value in group.settings.items()]
        lines += [f"plug-in {plugin}" for plugin in group.plugins]
        for whom, refused in (("the operator", group.refused), ("viewers", group.refused_to_viewers)):
            lines += [f"refused to {whom}: {what}: {code} {message}" for what, (code, message) in refused]
        if group.ahead:
            lines.append(f"clocks of server and sources are ahead by {group.ahead:g} s")
        for body in (*group.objects, *self.decision.objects):
            same = [other["metadata"]["name"] for other in self.decision.objects if _alike(other, body)]
            name = body["metadata"]["name"]
            if body["kind"] not in UNTOLD and (not same or same[0] == name):
                several = name if len(same) < 2 else f"{same[0]} to {same[-1]}"
                lines += _wrapped(_told(body), f"{body['kind']} {several} ")
        for step in self.decision.steps:
            lines += _wrapped(step, "then ")
        return lines

    def _condition(self, condition: Json) -> str:
        words = (condition["type"], condition["status"], condition.get("reason"))
        message = f": {condition['message']}" if condition.get("message") else ""
        return (
            f"{' '.join(filter(None, words))} since {self._seconds(condition['lastTransitionTime'])}{message}"
        )

    def _seconds(self, time: str) -> str:
        seconds = (parse_time(time) - self._began).total_seconds()
        return "earlier" if seconds < 0 else f"{seconds:.0f} s"

    def _timed(self, value: Any, key: str = "") -> Any:
        """Return the JSON of a page with times in seconds since the steps began."""
        if isinstance(value, dict):
            return {name: self._timed(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._timed(item, key) for item in value]
        return f"{value - self._began.timestamp():.0f} s" if key in TIMES and value else value

    async def _events(self) -> list[str]:
        listed = (
            await self._stage.cluster.user.list(CORE_EVENTS, ListOptions(self.decision.namespace))
        ).items
        lines = []
        for event in listed:
            about = event["involvedObject"]
            other = "" if about["name"] == self._named else f" of {about['kind']} {about['name']}"
            count = event.get("count", 1)
            time = event.get("eventTime") or event["firstTimestamp"]
            times = f", {count} times" if count > 1 else ""
            what = f"{event['type']} {event['reason']}{other} at {self._seconds(time)}{times}"
            lines.append((parse_time(time), f"{what}: {event['message']}"))
        return [line for _, line in sorted(lines)]

    async def _replicas(self) -> dict[str, list[str]]:
        operators, here = await self._stage.programs.explain_replicas(self.decision.namespace, self._named)
        if here["text"].startswith(operators["text"]):
            here["text"] = "(as the operator's)" + here["text"].removeprefix(operators["text"])
        data = operators.get("explanation", here.get("explanation", {}))
        return {
            "explain --operator": operators["text"].splitlines(),
            "explain": here["text"].splitlines(),
            "explain -o json": _shown(_without(data, set())),
        }

    async def _sizes(self) -> dict[str, list[str]]:
        stage, place = self._stage, self.decision.namespace
        pods = (await stage.cluster.user.list(PODS.untyped(), ListOptions(place))).items
        sections = {
            "pods": [line for pod in pods for line in _wrapped(_sized(pod), f"{pod['metadata']['name']} ")]
        }
        target = self._about["spec"]["targetRef"]["name"]
        names = [name for pod in pods if (name := pod["metadata"]["name"]).startswith(f"{target}-")]
        for kind, name in [("vpa", self._named), *(("pod", name) for name in names[:1])]:
            lines, data = await stage.programs.explain_size(kind, place, name)
            sections[f"explain {kind}/{name}"] = lines
            sections[f"explain {kind}/{name} -o json"] = _shown(_without(data, set()))
        return sections

    async def _page(self) -> Json:
        is_native = self._about.get("apiVersion", "").startswith("autoscaling/")
        kind = ("native" if is_native else "hpa") if self.decision.group.is_horizontal else "vpa"
        query = f"id={kind}/{self.decision.namespace}/{self._named}"
        answer = await self._stage.programs.browser.get(f"/api/{kind.replace('native', 'hpa')}", query=query)
        page: Json = answer.json()
        return page


def _wrapped(value: Json, before: str) -> list[str]:
    text = json.dumps(value, ensure_ascii=False)
    return textwrap.wrap(text, WIDTH, initial_indent=before, subsequent_indent="    ", break_long_words=False)


def _told(body: Json) -> Any:
    """Return an object without its kind and name, and without what a workload says of its pods, which are given."""
    told = {key: value for key, value in body.items() if key not in ("kind", "name")}
    told["metadata"] = {key: value for key, value in body["metadata"].items() if key != "name"}
    if "template" in (spec := body.get("spec", {})):
        told["spec"] = {key: value for key, value in spec.items() if key not in OF_PODS}
    return _without(told, set())


def _sized(pod: Json) -> Any:
    """Return what of a pod depends on its size."""
    ours = {
        key: value
        for key, value in pod["metadata"].get("annotations", {}).items()
        if not key.startswith("kube")
    }
    kept: Json = {"labels": pod["metadata"].get("labels"), "annotations": ours}
    kept |= {spec["name"]: spec.get("resources", {}) for spec in pod["spec"]["containers"]}
    return _without(kept, set())


def _alike(first: Json, second: Json) -> bool:
    """Return whether two objects differ by their names only."""
    return {**first, "metadata": {**first["metadata"], "name": ""}} == {
        **second,
        "metadata": {**second["metadata"], "name": ""},
    }


def _without(value: Any, names: set[str]) -> Any:
    """Return JSON without some members, and without empty ones."""
    if isinstance(value, dict):
        kept = {key: _without(item, names) for key, item in value.items() if key not in names}
        return {key: item for key, item in kept.items() if item or (item == 0 and item is not False)}
    return [_without(item, names) for item in value] if isinstance(value, list | tuple) else value


def _shown(value: Any, width: int = WIDTH) -> list[str]:
    """Return JSON in lines: what fits is on one line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= width or not isinstance(value, dict | list) or not value:
        return [text]
    ends, lines = ("{", "}") if isinstance(value, dict) else ("[", "]"), []
    items = value.items() if isinstance(value, dict) else (("", item) for item in value)
    for key, item in items:
        name = f"{json.dumps(key)}: " if isinstance(value, dict) else ""
        first, *rest = _shown(item, width - 2 - len(name))
        lines += [f"  {name}{first}", *(f"  {line}" for line in rest)]
        lines[-1] += ","
    lines[-1] = lines[-1].removesuffix(",")
    return [ends[0], *lines, ends[1]]
