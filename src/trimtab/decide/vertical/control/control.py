"""Which VPA controls a pod, for recommender, updater and admission alike.

Among the active VPAs that match a pod the highest level wins, then the oldest, then the first by name. VPAs are indexed
by the controller they target, so the search for a pod's VPA covers only the VPAs of its workload.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trimtab.decide.vertical.control.claims import Trust, VpaClaim, VPAIndex, strength
from trimtab.decide.vertical.control.controllers import ControllerIndex, ControllerKey, topmost_controller
from trimtab.decide.vertical.control.scope import NodeLabels
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import UpdateMode

CONFLICT_REASON = "VPAScopeConflict"
OUTDATED = "its recommendation was learnt for another target or scope"


@dataclass(frozen=True)
class ScopeConflict:
    """Two VPAs whose scopes match the same pod. The older VPA controls it, or the first by name."""

    pod: str
    pod_uid: str
    winner: str
    loser: str
    is_preview: bool = False
    """Whether both VPAs are in mode Off, so that the conflict begins when they become active."""
    is_tie: bool = False
    """Whether both VPAs are equally old, so that the name decides."""

    @property
    def message(self) -> str:
        """The text of the Warning event on both VPAs."""
        controls = "would control" if self.is_preview else "controls"
        return (
            f"Pod {self.pod} matches the scopes of VPA {self.winner} and VPA {self.loser}; "
            f"{self.winner} {controls} it because it is {'first by name' if self.is_tie else 'older'}; make the scopes disjoint"
        )


@dataclass(frozen=True)
class Control:
    """Which VPAs size a pod, boost its start and learn from it, and why the other VPAs of the workload do not."""

    claim: VpaClaim | None
    """The VPA that sizes the pod: the strongest active one that matches."""
    undecided: str = ""
    """Why it is not known whether a scope has the pod. Then no VPA changes it and none learns from it."""
    target: ControllerKey | None = None
    matching: tuple[VpaClaim, ...] = ()
    """The VPAs that certainly match, strongest first."""
    booster: VpaClaim | None = None
    """The controlling VPA, or else a VPA in mode Off that has a boost."""
    receivers: tuple[VpaClaim, ...] = ()
    """The VPAs that learn from the pod. The controlling VPA is first, VPAs in mode Off follow."""
    lost: tuple[tuple[VpaClaim, str], ...] = ()
    conflicts: tuple[ScopeConflict, ...] = ()
    reason: str = ""

    @property
    def key(self) -> str | None:
        """The controlling VPA's `namespace/name`."""
        return self.claim.key if self.claim else None


NO_CONTROL = Control(None)


def control_of(
    pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels, *, is_new: bool = False
) -> Control:
    """Return which VPA controls a pod, and why the others do not.

    A pod that no scope certainly has, and that a scope may have, is undecided: its role is unknown, so its size stays. A new pod
    has no size yet, and takes that of the first VPA that certainly matches and can be trusted.
    """
    target = topmost_controller(pod, owners)
    if target is None:
        return Control(None, reason="the pod has no controller that a VPA can target")
    matching: list[VpaClaim] = []
    lost: list[tuple[VpaClaim, str]] = []
    doubt = ""
    for claim in index.claims_on(target):
        matched, reason = claim.match(pod, nodes)
        if matched:
            matching.append(claim)
        if not (matched and claim.is_active):
            lost.append((claim, reason or f"its update mode is {claim.mode}"))
        if matched is None and claim.mode != UpdateMode.OFF:
            doubt = doubt or f"which VPA controls it is not known: {reason}"
    active = [claim for claim in matching if claim.is_active]
    refused: list[VpaClaim] = []
    if is_new and index.rules.ours:
        refused = [claim for claim in active if claim.trust is Trust.NOTHING]
        active = [claim for claim in active if claim not in refused]
        lost.extend((claim, OUTDATED) for claim in refused)
    if doubt and not is_new and not (active and active[0].level):
        return Control(None, doubt, target, tuple(matching), lost=tuple(lost), reason=doubt)
    winner, others = (active[0], active[1:]) if active else (None, [])
    if winner is not None:
        lost.extend((other, _loss_reason(winner, other)) for other in others)
    return Control(
        claim=winner,
        target=target,
        matching=tuple(matching),
        booster=winner
        or next((claim for claim in matching if not claim.is_active and claim.has_boost), None),
        receivers=_receivers(winner, matching),
        lost=tuple(lost),
        conflicts=tuple(_conflicts(pod, active or matching, is_preview=winner is None)),
        reason=_win_reason(winner, others)
        if winner
        else f"VPA {refused[0].key}: {OUTDATED}"
        if refused
        else f"no active VPA of {target} matches the pod",
    )


def _receivers(winner: VpaClaim | None, matching: Iterable[VpaClaim]) -> tuple[VpaClaim, ...]:
    """Return the VPAs that learn from a pod, given those that match it.

    A VPA in mode Off is a preview: it recommends what it would recommend if it were active. Of these VPAs, the strongest
    of each recommender receives samples, so that two recommenders can be compared on one workload. A controlling VPA of
    a higher level excludes weaker VPAs in mode Off. Beside a controlling VPA of the same level, a VPA in mode Off may be
    there to compare two policies (docs/decisions/a-single-function-decides-which-vpa-controls-a-pod.md).
    """
    previews: dict[str, VpaClaim] = {}
    for claim in matching:
        if claim.mode == UpdateMode.OFF:
            previews.setdefault(recommender_of(claim.vpa), claim)
    level = 0 if winner is None else winner.level
    off = tuple(claim for claim in previews.values() if claim.level >= level)
    return off if winner is None else (winner, *off)


def unreported_conflicts(
    conflicts: Iterable[ScopeConflict], reported: frozenset[tuple[str, str, str]]
) -> tuple[tuple[ScopeConflict, ...], frozenset[tuple[str, str, str]]]:
    """Return the conflicts to report, and the next `reported`. A conflict is reported once until it ends."""
    current = {(conflict.pod_uid, conflict.winner, conflict.loser): conflict for conflict in conflicts}
    fresh = tuple(conflict for key, conflict in current.items() if key not in reported)
    return fresh, frozenset(current)


def _loss_reason(winner: VpaClaim, other: VpaClaim) -> str:
    if winner.level != other.level:
        return f"VPA {winner.key} speaks for a part of the workload and precedes it"
    return f"VPA {winner.key} is older, or first by name"


def _win_reason(winner: VpaClaim, others: list[VpaClaim]) -> str:
    if not others:
        return f"VPA {winner.key} alone matches"
    return f"VPA {winner.key} precedes {', '.join(other.key for other in others)}"


def _conflicts(pod: Pod, claims: Sequence[VpaClaim], *, is_preview: bool) -> Iterator[ScopeConflict]:
    for other in claims[1:]:
        if other.level == claims[0].level == 1:
            is_tie = strength(other)[:2] == strength(claims[0])[:2]
            yield ScopeConflict(
                pod.metadata.key, pod.metadata.uid, claims[0].key, other.key, is_preview, is_tie
            )
