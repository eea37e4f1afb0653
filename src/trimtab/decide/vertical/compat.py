"""Differences from the upstream Vertical Pod Autoscaler, one named switch per ruling.

The defaults are our rulings. `VPA_1_8` turns every switch off: that is upstream v1.8, defects included, and the setting
of the conformance vectors. Each switch is a sentence that is true when the switch is on.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class VpaCompat:
    """Our rulings, on by default and off in `VPA_1_8`."""

    initial_keeps_control: bool = True
    """A VPA in mode Initial controls its pods. Upstream's updater drops it first, so another VPA resizes them."""
    budget_is_shared: bool = True
    """Disruptions count per creator over all its live pods. Upstream counts the pods of one VPA at a time."""
    unknown_kinds_are_budgeted: bool = True
    """A creator whose replica count is unknown has as many replicas as live pods. Upstream takes 0, which is no limit."""
    disruptions_last_until_ready: bool = True
    """A disruption counts until the pod is Ready at its new size. Upstream counts running pods, and forgets resizes."""
    in_place_waits: bool = True
    """Mode InPlace waits for the budget and for Pending pods. Upstream sends the resize in both cases."""
    resize_clock_restarts: bool = True
    """A resize's time-out counts from that resize. Upstream counts from the first resize of that pod name."""
    resizes_only_changes: bool = True
    """A resize sends only changes, and no change is success. Upstream sends all resources, and then evicts the pod."""
    infeasible_is_per_vpa: bool = True
    """An infeasible resize counts for the VPA that requested it. Upstream counts it for the next VPA, too."""
    needs_current_recommendation: bool = True
    """A recommendation for another target or scope is not applied. Upstream applies any."""
    scoped_auto_is_in_place: bool = True
    """Mode Auto on a VPA with a scope resizes in place first. Upstream has no scopes, and Auto means Recreate."""
    request_namespace_counts: bool = True
    """A pod under admission without a namespace is in the request's. Upstream uses it for unnamed pods only."""
    admission_is_idempotent: bool = True
    """Admitting a pod again changes nothing, however often webhooks are reinvoked. Upstream may drift."""
    applies_only_to_controlled: bool = True
    """Containers in mode Off and resources not controlled stay as they are, even if the status still names them."""
    limit_range_keeps_absent: bool = True
    """Fitting a pod into its LimitRange adds no resources. Upstream writes 0 for resources without a recommendation."""
    sizes_are_admissible: bool = True
    """A pod gets as much of its size as the API server admits, in its QoS class. Upstream's size may be rejected."""
    ratio_is_the_users: bool = True
    """Limits keep the ratio that the user wrote, rounded up. Upstream takes the present ratio and cuts it."""

    role_change_closes_window: bool = True
    """A pod that changes labels starts a new memory window. Upstream subtracts its old peak from the new role."""
    samples_follow_control: bool = True
    """A pod's samples go to the VPA that controls it. Upstream adds them to every VPA whose selector matches."""
    samples_survive_collection: bool = True
    """A sample whose aggregate was collected creates a new one. Upstream loses such samples of relabelled pods."""
    refuses_impossible_samples: bool = True
    """Usage above the node's capacity or from the future is rejected. Upstream adds it to the histogram and saves it."""
    recommends_from_samples: bool = True
    """A container without CPU samples gets no recommendation. Upstream recommends the minimum, which shrinks it."""
    history_survives_selectors: bool = True
    """A VPA whose selector changes and returns has its loaded history again. Upstream drops it."""
    windows_survive_restarts: bool = True
    """A restarted recommender continues running memory windows. Upstream loses the peaks of up to a day."""
    unseen_kills_count: bool = True
    """An OOM kill counts if only the container's last state shows it. Upstream misses it where a back-off follows."""
    gone_containers_expire: bool = True
    """Loaded history of a container that no pod has any more expires with its window. Upstream keeps it for ever."""
    small_moves_wait: bool = True
    """A status of which only bounds changed, by less than 1 %, is not written. Upstream writes every change."""

    orphans_need_a_vpa: bool = True
    """Orphaned checkpoints are deleted only while a VPA exists. Upstream always deletes them."""


DEFAULT = VpaCompat()

VPA_1_8 = VpaCompat(**{field.name: False for field in fields(VpaCompat)})
