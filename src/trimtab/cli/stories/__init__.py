"""The stories of `trimtab up`: objects, load and text of each."""

import re
from dataclasses import dataclass
from datetime import timedelta
from importlib import resources
from typing import Any

import yaml

from trimtab.model.readable import readable_span
from trimtab_lab.load.plan import KIND as LOAD_PLAN
from trimtab_lab.load.plan import LoadPlan, parse_plan

_SPAN = re.compile(r"\{([0-9]+) s\}")


@dataclass(frozen=True, slots=True)
class Story:
    """An example in its own namespace."""

    name: str
    """The name for `--scenario`, and the namespace."""
    title: str
    look: str
    """What the story shows. Spans of the cluster's time are in braces, as `{300 s}`."""
    try_this: str
    """A command to try next."""

    @property
    def file(self) -> str:
        """Return the name of the story's file."""
        return f"{STORIES.index(self) + 1}-{self.name}.yaml"

    def see(self, speed: float) -> str:
        """Return what the story shows, with spans of the user's time on a cluster that runs so fast."""
        return _SPAN.sub(lambda found: readable_span(timedelta(seconds=int(found[1]) / speed)), self.look)

    def objects(self) -> list[dict[str, Any]]:
        """Return the objects to apply."""
        return [document for document in self._documents() if document["kind"] != LOAD_PLAN]

    def load(self) -> LoadPlan:
        """Return the load of the workloads."""
        plan = next(document for document in self._documents() if document["kind"] == LOAD_PLAN)
        return parse_plan(yaml.safe_dump(plan))

    def _documents(self) -> list[dict[str, Any]]:
        text = resources.files(__name__).joinpath(self.file).read_text(encoding="utf-8")
        return [document for document in yaml.safe_load_all(text) if document]


STORIES = (
    Story(
        "same-labels",
        "A Job that shares its labels",
        "two shops with the same load, and beside each a busy Job with the labels of the shop; shop-by-label counts the "
        "Job's pod and grows to its maximum of 8, shop-by-owner counts its own pods only and stays at 2",
        "trimtab explain hpa/shop-by-label -n same-labels",
    ),
    Story(
        "tolerance",
        "A tolerance of its own",
        "the load of both workloads rises to 7 % above its target within {60 s}; api-5-percent has a tolerance of 5 % and "
        "goes from 10 to 11 pods, api-default has the default of 10 % and stays at 10",
        "kubectl get thpa -n tolerance -w",
    ),
    Story(
        "to-zero",
        "To zero and back",
        "mail arrives for {60 s} of every {300 s}; mailer wakes up with the first mail, grows with the queue, and is "
        "back at zero within {60 s} once the queue is empty",
        "kubectl describe thpa mailer -n to-zero",
    ),
    Story(
        "one-series",
        "One series of a metric",
        "the metric backlog has a series per queue; that of images rises to 30, and its workers from 1 to 6; "
        "that of videos stays at 4, and its single worker is enough",
        "trimtab explain hpa/images -n one-series",
    ),
    Story(
        "roles",
        "A size for each role",
        "a pod of db leads and uses 800m of CPU, its two followers use 100m each; VPA db-leader sizes the pod that leads, "
        "VPA db the followers, in place; another pod leads every {600 s}, and the sizes follow within {180 s}",
        "kubectl get tvpa -n roles; kubectl get pods -n roles -L role; trimtab explain pod/db-0 -n roles",
    ),
)


def chosen(names: tuple[str, ...]) -> tuple[Story, ...]:
    """Return the stories of these names, or all. Raise ValueError for unknown names."""
    known = {story.name: story for story in STORIES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no story {unknown[0]!r}; there are: {', '.join(known)}")
    return tuple(known[name] for name in names) or STORIES
