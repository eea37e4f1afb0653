"""The lab judges each rule of our definitions as an evaluator of CEL does."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.cel import holds
from trimtab.model.crds import CRDS
from trimtab.model.vpa.webhooks import MUTATING_WEBHOOKS
from trimtab_lab.crd.rules import RULES, judge_of
from trimtab_lab.webhooks import CONDITIONS


def rules_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (rule["rule"] for rule in node.get(RULES, ()))
        for child in node.values():
            yield from rules_in(child)


OURS = sorted({rule for crd in CRDS for rule in rules_in(crd.manifest()["spec"]["versions"][0]["schema"])})
SOME = st.sampled_from
KINDS = ("Object", "Pods", "Resource", "ContainerResource", "External", "Factor", "Quantity", "Replicas")
AMOUNT = SOME(("0", "1", "-1", 2, "100m", "1Gi", "1e3", "1e300", "1e-1000", "0.5", "1.5"))
NOT_AMOUNTS = SOME(("", "much", "1 Gi"))
TEXT = st.text("aZ09./%-_ ", max_size=6) | SOME(
    (".", "..", "LabelSelector", "OwnerReferences", "example.com/X", "a" * 64, "a.b/" + "c" * 64)
)
OBJECTS = st.fixed_dictionaries(
    {
        "type": SOME(KINDS),
        "kind": SOME(("Deployment", "ReplicationController")),
        "operator": SOME(("In", "NotIn", "Exists", "DoesNotExist")),
        "policy": SOME(("LastGood", "Replicas", "Ignore")),
        "maxReplicas": st.integers(0, 3),
    },
    optional={
        **dict.fromkeys(("object", "pods", "resource", "containerResource", "external"), st.just({})),
        **dict.fromkeys(("factor", "quantity", "replicas", "maxAgeSeconds"), st.integers(0, 3)),
        **dict.fromkeys(("selectionStrategy", "SelectionStrategy"), SOME(("OwnerReference", "a.b/c"))),
        **dict.fromkeys(("minAllowed", "maxAllowed"), st.dictionaries(SOME(("cpu", "memory")), AMOUNT)),
        "minReplicas": st.integers(0, 3),
        "metrics": st.lists(st.fixed_dictionaries({"type": SOME(KINDS)}), max_size=3),
        "apiVersion": SOME(("v1", "apps/v1")),
        "values": st.lists(SOME(("a", "b")), max_size=2),
        "mode": SOME(("Off", "Auto")),
        "controlledValues": SOME(("RequestsAndLimits", "RequestsOnly")),
    },
)


def values_of(rule: str) -> st.SearchStrategy[Any]:
    """Return values of the type that a rule judges."""
    if "string(self)" in rule:
        return AMOUNT | NOT_AMOUNTS
    if rule.startswith("self.all("):
        return st.dictionaries(TEXT.filter(bool), st.just(""), max_size=2)
    return OBJECTS if "self." in rule.replace("self.contains", "").replace("self.matches", "") else TEXT


@pytest.mark.parametrize("rule", OURS, ids=lambda rule: rule[:50])
@given(data=st.data())
def test_a_rule_of_ours_is_judged_as_in_cel(rule, data):
    value = data.draw(values_of(rule))
    # A label key has a prefix of at most 253 letters; the rule knows the sum only. The schema's pattern knows the rest.
    assume(not rule.startswith("self.all(") or all(len(key) < 60 for key in value))
    judge = judge_of(rule)
    assert judge is not None
    assert judge(value) == holds(rule, value)


def test_each_match_condition_of_our_webhooks_is_judged():
    ours = {
        condition["expression"]
        for webhooks in MUTATING_WEBHOOKS.values()
        for webhook in webhooks
        for condition in webhook.match_conditions
    }
    assert ours == CONDITIONS.keys()


def test_rules_of_others_are_not_judged():
    assert judge_of("self.size <= self.most") is None
