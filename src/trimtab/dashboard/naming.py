"""Sentences that call metrics by the names that people know them by: `cpu`, `orders`, `queue_length{queue=mail}`.

Events and conditions spell a metric as Kubernetes does, selectors in Go's notation included, because programs read
them. On the page the short name stands in its place.
"""

from trimtab.decide.horizontal import Decision, Observation
from trimtab.decide.horizontal.proposals.proposal import Proposal
from trimtab.decide.horizontal.units import told_name
from trimtab.model.hpa.naming import label_of


def labels_of(seen: Observation, decision: Decision) -> tuple[str, ...]:
    """Return the short name of each metric that was computed; they are in the order of the spec."""
    return tuple(label_of(metric) for metric in seen.hpa.spec.metrics[: len(decision.trail.proposals)])


def renamed(text: str, seen: Observation, decision: Decision) -> str:
    """Return a sentence with every metric called by its short name."""
    for label, found in zip(labels_of(seen, decision), decision.trail.proposals, strict=False):
        if isinstance(found, Proposal):
            text = text.replace(found.name, label).replace(told_name(found), label)
    return text
