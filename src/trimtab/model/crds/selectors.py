"""Notes on the label selectors of a definition: what an API server refuses in them before anybody uses them."""

from trimtab.model.crds.rules import (
    LABEL_KEY,
    LABEL_KEY_LENGTH,
    LABEL_LENGTH,
    LABEL_VALUE,
    MAX_LABELS,
)
from trimtab.model.crds.schema import Schema, rule, rules
from trimtab.model.selector import LabelSelector, LabelSelectorRequirement

_VALUE: Schema = {"maxLength": LABEL_LENGTH, "pattern": LABEL_VALUE}

SELECTOR_TYPES: dict[type, Schema] = {
    LabelSelector: {"x-kubernetes-map-type": "atomic"},
    LabelSelectorRequirement: {
        "required": ["key", "operator"],
        **rules(
            rule(
                "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
                "must be specified when `operator` is 'In' or 'NotIn'",
                at=".values",
                reason="FieldValueRequired",
            ),
            rule(
                "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                at=".values",
                reason="FieldValueForbidden",
            ),
        ),
    },
}

SELECTOR_FIELDS: dict[tuple[type, str], Schema] = {
    (LabelSelector, "matchLabels"): {
        "maxProperties": MAX_LABELS,
        "additionalProperties": _VALUE,
        **rules(
            rule(
                f"self.all(key, size(key) <= {LABEL_KEY_LENGTH} && key.matches('{LABEL_KEY}'))",
                "every key must be a label key such as app.kubernetes.io/name",
            )
        ),
    },
    (LabelSelector, "matchExpressions"): {"maxItems": MAX_LABELS, "x-kubernetes-list-type": "atomic"},
    (LabelSelectorRequirement, "key"): {
        "minLength": 1,
        "maxLength": LABEL_KEY_LENGTH,
        "pattern": LABEL_KEY,
    },
    (LabelSelectorRequirement, "operator"): {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
    (LabelSelectorRequirement, "values"): {
        "maxItems": MAX_LABELS,
        "items": _VALUE,
        "x-kubernetes-list-type": "atomic",
    },
}
