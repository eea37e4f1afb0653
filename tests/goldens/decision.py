"""The rows of the tables: what is observed, and what happens."""

import re
from dataclasses import dataclass, field
from zlib import crc32

from trimtab.cluster.resource import Json
from trimtab.plugins.registry import Plugin

Answer = tuple[int, str]
"""The code and the message of a refusal."""


@dataclass(frozen=True)
class Group:
    """What the decisions of one lab share."""

    name: str
    settings: Json = field(default_factory=dict)
    components: tuple[str, ...] = ("horizontal",)
    objects: tuple[Json, ...] = ()
    """Objects without a namespace, such as nodes."""
    refused: tuple[tuple[str, Answer], ...] = ()
    """Requests that are refused, by `METHOD part-of-path`, with code and message."""
    refused_to_viewers: tuple[tuple[str, Answer], ...] = ()
    """The same for who runs `trimtab explain`."""
    plugins: tuple[Plugin, ...] = ()
    ahead: float = 0.0
    """How far the clocks of the API server and of the metrics sources are ahead of the operator's, in seconds."""

    @property
    def is_horizontal(self) -> bool:
        """Return whether HPAs are decided about, not VPAs."""
        return self.components == ("horizontal",)


def namespace_of(sentence: str) -> str:
    """Return the namespace of a decision on the lab, which depends on nothing else."""
    return f"g{crc32(sentence.encode()):08x}"


@dataclass(frozen=True)
class Decision:
    """One row of a table: a sentence, the objects of a namespace, and what happens before each loop.

    What a step may have: `usage` by pod or by the beginning of its name, `metrics` by name, the `age` of all samples in
    seconds, `set` with merges by `Kind/name` (into metadata, spec, status or scale), `spoil` with merges into specs past
    every check, `create` with objects, `refuse` with answers by `METHOD part-of-path`, `outage` with the same for all
    namespaces, `stuck` with pods that kubelets and controllers leave alone, `wait` with a number of loops instead of 1.
    """

    sentence: str
    group: Group
    objects: tuple[Json, ...]
    """The autoscaler that the decision is about is the last one."""
    steps: tuple[Json, ...] = ({},)

    @property
    def path(self) -> str:
        """Return the file, below the folder of all goldens."""
        side = "horizontal" if self.group.is_horizontal else "vertical"
        return f"{side}/{re.sub(r'[^a-z0-9]+', '-', self.sentence.lower()).strip('-')}.txt"

    @property
    def namespace(self) -> str:
        """Return the namespace on the lab."""
        return namespace_of(self.sentence)

    @property
    def loops(self) -> list[Json]:
        """Return what happens before each loop."""
        return [part for step in self.steps for part in (step, *([{}] * (step.get("wait", 1) - 1)))]
