"""Where we depart from the upstream Vertical Pod Autoscaler, one named switch per ruling.

The defaults are our rulings; `VPA_1_8` sets every switch to what upstream v1.8 does, defects included, and is the
setting that the conformance vectors run in. Each switch is a sentence that is true when the switch is on.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class VpaCompat:
    """Our rulings; every field is on by default and off in `VPA_1_8`."""

    initial_keeps_control: bool = True
    """A VPA in mode Initial controls its pods; upstream's updater drops it first, so another VPA resizes them."""
    budget_is_shared: bool = True
    """Disruption is counted per creator over all its live pods; upstream counts the pods of one VPA at a time."""
    unknown_kinds_are_budgeted: bool = True
    """A creator whose replica count is unknown has as many replicas as live pods; upstream takes 0: no limit."""
    disruptions_last_until_ready: bool = True
    """A request counts until the pod is Ready at its new size; upstream counts running pods, and forgets resizes."""
    in_place_waits: bool = True
    """Mode InPlace waits when told to; upstream sends the resize also beyond the budget and to Pending pods."""
    resize_clock_restarts: bool = True
    """A resize's time-out counts from that resize; upstream counts from the first one it ever saw of that pod name."""
    resizes_only_changes: bool = True
    """A resize sends what changes, and nothing to send is success; upstream sends all, and then evicts the pod."""
    infeasible_is_per_vpa: bool = True
    """An infeasible resize is held against the VPA that asked for it; upstream holds it against the next one too."""
    needs_current_recommendation: bool = True
    """A recommendation learnt under another target or scope is not applied; upstream applies any."""
    scoped_auto_is_in_place: bool = True
    """Mode Auto on a VPA with a scope resizes in place first; upstream knows no scopes, Auto means Recreate."""
    request_namespace_counts: bool = True
    """A pod under admission without a namespace is in the request's; upstream uses it for unnamed pods only."""
    admission_is_idempotent: bool = True
    """Admitting a pod again changes nothing, however often webhooks are reinvoked; upstream may drift."""
    applies_only_to_controlled: bool = True
    """Containers in mode Off and resources not controlled stay as they are, even if the status still names them."""
    limit_range_keeps_absent: bool = True
    """Fitting a pod into its LimitRange invents no amounts; upstream writes 0 for resources nobody recommended."""
    sizes_are_admissible: bool = True
    """A pod gets as much of its size as the API server admits, in its QoS class; upstream's may be refused."""
    ratio_is_the_users: bool = True
    """Limits keep the ratio that the user wrote, rounded up; upstream takes the present ratio and cuts it."""

    role_change_closes_window: bool = True
    """A pod that changes labels starts a new memory window; upstream takes its old peak out of the new role."""
    samples_follow_control: bool = True
    """A pod's usage teaches the VPA that controls it; upstream teaches every VPA whose selector matches."""
    samples_survive_collection: bool = True
    """A sample whose aggregate was collected makes a new one; upstream loses those of relabelled pods."""
    refuses_impossible_samples: bool = True
    """Usage above the node's capacity or from the future is refused; upstream learns from it and saves it."""
    recommends_from_samples: bool = True
    """A container without CPU samples gets no recommendation; upstream recommends the minimum, which shrinks it."""
    history_survives_selectors: bool = True
    """A VPA whose selector changes and comes back has its loaded history again; upstream forgets it."""
    windows_survive_restarts: bool = True
    """A restarted recommender goes on with running memory windows; upstream forgets the peaks of up to a day."""
    unseen_kills_count: bool = True
    """A kill that only a container's last state tells counts; upstream misses it where a back-off follows."""
    gone_containers_expire: bool = True
    """Loaded history of a container that no pod has any more ends with its window; upstream keeps it for ever."""
    small_moves_wait: bool = True
    """A status whose bounds alone moved, by less than a hundredth, is not written; upstream writes every move."""

    orphans_need_a_vpa: bool = True
    """Orphaned checkpoints are collected only while some VPA is known; upstream collects them always."""


DEFAULT = VpaCompat()

VPA_1_8 = VpaCompat(
    initial_keeps_control=False,
    budget_is_shared=False,
    unknown_kinds_are_budgeted=False,
    disruptions_last_until_ready=False,
    in_place_waits=False,
    resize_clock_restarts=False,
    resizes_only_changes=False,
    infeasible_is_per_vpa=False,
    needs_current_recommendation=False,
    scoped_auto_is_in_place=False,
    request_namespace_counts=False,
    admission_is_idempotent=False,
    applies_only_to_controlled=False,
    limit_range_keeps_absent=False,
    sizes_are_admissible=False,
    ratio_is_the_users=False,
    role_change_closes_window=False,
    samples_follow_control=False,
    samples_survive_collection=False,
    refuses_impossible_samples=False,
    recommends_from_samples=False,
    history_survives_selectors=False,
    windows_survive_restarts=False,
    unseen_kills_count=False,
    gone_containers_expire=False,
    small_moves_wait=False,
    orphans_need_a_vpa=False,
)
