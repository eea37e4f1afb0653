"""Checkers of label selectors, in their text form and in their JSON form."""

from typing import Any

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from trimtab.model.json import wire
from trimtab.model.labels.selector import (
    LabelSelector,
    Selector,
    SelectorError,
    go_string,
)


@checks("function", "parseSelector")
def parse_selector(case):
    try:
        selector = Selector.parse(case["input"])
    except SelectorError as error:
        return differences(case["expect"], {"error": str(error)})
    return differences(case["expect"], _described(selector, case["labelSets"]))


@checks("function", "labelSelector")
def label_selector(case):
    given = None if case["input"] is None else wire.convert(case["input"], LabelSelector)
    try:
        selector = Selector.from_label_selector(given)
    except SelectorError as error:
        return differences(case["expect"], {"error": str(error), "goString": go_string(given)})
    shown = {"formatted": str(selector) or "<none>", "goString": go_string(given)}
    return differences(case["expect"], _described(selector, case["labelSets"]) | shown)


def _described(selector: Selector, label_sets: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "canonical": str(selector),
        "empty": selector.is_empty,
        "selectable": not selector.selects_nothing,
        "requirements": [
            {"key": one.key, "operator": one.operator, "values": list(one.values)}
            for one in selector.requirements
        ],
        "matches": [selector.matches(labels) for labels in label_sets],
    }
