"""The part of an update loop about one VPA: resize or evict its pods, by its update mode."""

from trimtab.decide.vertical.control.claims import DRIVING_MODES, Trust, VpaClaim
from trimtab.decide.vertical.control.control import OUTDATED
from trimtab.decide.vertical.update.disruption_budget import assign_groups
from trimtab.decide.vertical.update.evictions import VpaEvictions
from trimtab.decide.vertical.update.in_place.reverts import revert_all, revert_outdated
from trimtab.decide.vertical.update.in_place.upstream_resizes import UpstreamVpaResizes
from trimtab.decide.vertical.update.in_place.vpa_resizes import VpaResizes
from trimtab.decide.vertical.update.loop_state import LoopContext
from trimtab.decide.vertical.update.vpa_pods import IN_PLACE_MODES, Step, VpaPods
from trimtab.model.vpa.types import UpdateMode


def effective_mode(claim: VpaClaim, context: LoopContext) -> str:
    """Return the mode in which the VPA's pods are updated.

    Auto with a scope resizes in place first, so that a leader keeps its lease.
    """
    is_scoped_auto = claim.mode == UpdateMode.AUTO and bool(claim.vpa.scope_names)
    if is_scoped_auto and context.rules.ours and context.observation.serves_resize:
        return UpdateMode.IN_PLACE_OR_RECREATE
    return claim.mode


def update_vpa(update: VpaPods) -> Step:
    """Change the VPA's pods as far as budgets and eviction limits allow."""
    forbidden = _mode_forbids(update)
    if reason := forbidden or _outdated_recommendation(update):
        for pod in update.pods:
            update.skip(pod, reason)
        if forbidden:
            yield from revert_all(update, forbidden)
        return
    rules, is_in_place = update.context.rules, update.mode in IN_PLACE_MODES
    if not rules.ours:
        update.state.count_groups(update.pods)
    update.members = assign_groups(
        update.pods,
        _required_replicas(update),
        minimum_is_waived=is_in_place and update.context.settings.skips_budget_in_place,
        known=update.state.groups,
        rules=rules,
    )
    if is_in_place and rules.ours:
        yield from VpaResizes(update).run()
    elif is_in_place:
        yield from UpstreamVpaResizes(update).run()
    else:
        reverted = yield from revert_outdated(update)
        yield from VpaEvictions(update).run(reverted)


def _mode_forbids(update: VpaPods) -> str:
    if update.mode not in DRIVING_MODES:
        return f"update mode {update.mode} changes no running pod"
    if update.mode == UpdateMode.IN_PLACE and not update.context.gates.in_place:
        return "mode InPlace needs feature gate InPlace"
    return ""


def _outdated_recommendation(update: VpaPods) -> str:
    if not update.context.rules.ours or update.claim.trust is Trust.ALL:
        return ""
    if update.claim.trust is Trust.NOTHING:
        return OUTDATED
    return "its recommendation is from before another VPA of the workload came or went"


def _required_replicas(update: VpaPods) -> int:
    policy = update.vpa.spec.update_policy
    if policy is not None and policy.min_replicas is not None:
        return policy.min_replicas
    return update.context.settings.min_replicas
