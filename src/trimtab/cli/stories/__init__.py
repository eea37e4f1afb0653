"""The stories of `trimtab up`: objects, load and text of each."""

from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

from trimtab.lab.load.plan import KIND as LOAD_PLAN
from trimtab.lab.load.plan import LoadPlan, parse_plan


@dataclass(frozen=True, slots=True)
class Story:
    """An example in its own namespace."""

    name: str
    """The name for `--scenario`, and the namespace."""
    title: str
    look: str
    """What the story shows."""
    try_this: str
    """A command to try next."""

    @property
    def file(self) -> str:
        """Return the name of the story's file."""
        return f"{STORIES.index(self) + 1}-{self.name}.yaml"

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
        "shop-by-label scales up for a Job's CPU; shop-by-owner, with the same load, counts only its own pods",
        "trimtab explain hpa/shop-by-owner -n same-labels",
    ),
    Story(
        "tolerance",
        "A tolerance of its own",
        "within a minute both are 7 % over target: api-5-percent adds a pod, api-default stays within 10 %",
        "kubectl get thpa -n tolerance -w",
    ),
    Story(
        "to-zero",
        "To zero and back",
        "mailer goes to zero when its queue is empty and wakes up with the next burst, every five minutes",
        "kubectl describe thpa mailer -n to-zero",
    ),
    Story(
        "one-series",
        "One series of a metric",
        "the backlog of images grows, that of videos does not: one metric name, told apart by its label",
        "trimtab explain hpa/images -n one-series",
    ),
    Story(
        "roles",
        "A size for each role",
        "the pod of db that leads needs four times as much; its VPAScope gives it, in place, whoever leads",
        "kubectl get vpa -n roles; kubectl get pods -n roles -L role",
    ),
)


def chosen(names: tuple[str, ...]) -> tuple[Story, ...]:
    """Return the stories of these names, or all. Raise ValueError for unknown names."""
    known = {story.name: story for story in STORIES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no story {unknown[0]!r}; there are: {', '.join(known)}")
    return tuple(known[name] for name in names) or STORIES
