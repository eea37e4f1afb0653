"""The validation rules of our own definitions (`x-kubernetes-validations`), judged by the model instead of CEL.

Rules of other definitions are stored and not evaluated: the real server evaluates them. A test compares each judgement with
an evaluator of CEL. A rule is skipped for a value that did not change, so that an old object that violates a new rule can
still be edited elsewhere (ratcheting).
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from trimtab.model import field_errors
from trimtab.model.field_errors import ErrorType, FieldError, FieldPath
from trimtab.model.labels.names import label_key_problems, path_segment_problems
from trimtab.model.quantity import Quantity, QuantityError
from trimtab_lab.storage.codec import JsonObject

RULES = "x-kubernetes-validations"
MISSING = object()
ENDLESS = "matches('[eE][+-]?[0-9]{3}')"

Judge = Callable[[Any], bool]


def _selects_values(self: JsonObject) -> bool:
    return self["operator"] not in ("In", "NotIn") or bool(self.get("values"))


def _selects_no_values(self: JsonObject) -> bool:
    return self["operator"] not in ("Exists", "DoesNotExist") or not self.get("values")


def _can_scale_to_zero(self: JsonObject) -> bool:
    sources = {metric["type"] for metric in self.get("metrics") or ()}
    return self.get("minReplicas", 1) > 0 or not sources.isdisjoint(("Object", "External"))


def _is_at_least(least: int) -> Judge:
    def judge(self: Any) -> bool:
        try:
            return not _is_endless(self) and Quantity.parse(str(self)) >= Quantity.from_int(least)
        except QuantityError:
            return False

    return judge


def _is_endless(amount: Any) -> bool:
    return re.search(r"[eE][+-]?[0-9]{3}", str(amount)) is not None


def _are_bounds_in_order(self: JsonObject) -> bool:
    least, most = self.get("minAllowed") or {}, self.get("maxAllowed") or {}
    return all(
        _is_endless(least[name])
        or _is_endless(most[name])
        or Quantity.parse(str(least[name])) <= Quantity.parse(str(most[name]))
        for name in least.keys() & most.keys()
    )


def _at_least(number: int) -> str:
    return (
        f"!string(self).{ENDLESS} && isQuantity(string(self)) && "
        f"!quantity(string(self)).isLessThan(quantity('{number}'))"
    )


#: Each rule of our definitions that is not of one of the forms below.
JUDGES: dict[str, Judge] = {
    "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas": lambda self: (
        self.get("minReplicas", self["maxReplicas"]) <= self["maxReplicas"]
    ),
    "!has(self.minReplicas) || self.minReplicas > 0 || "
    "(has(self.metrics) && self.metrics.exists(metric, metric.type in ['Object', 'External']))": _can_scale_to_zero,
    "!has(self.selectionStrategy) || !has(self.SelectionStrategy) || "
    "self.selectionStrategy == self.SelectionStrategy": lambda self: (
        len({self[name] for name in ("selectionStrategy", "SelectionStrategy") if name in self}) < 2
    ),
    "self.kind == 'ReplicationController' || (has(self.apiVersion) && self.apiVersion.contains('/'))": lambda self: (
        self["kind"] == "ReplicationController" or "/" in self.get("apiVersion", "")
    ),
    "!(self in ['.', '..']) && !self.contains('/') && !self.contains('%')": lambda self: (
        not path_segment_problems(self)
    ),
    "self.all(key, size(key) <= 317 && "
    "key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))": lambda self: (
        not any(map(label_key_problems, self))
    ),
    "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)": _selects_values,
    "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0": (
        _selects_no_values
    ),
    "!has(self.maxAgeSeconds) || self.policy == 'LastGood'": lambda self: (
        "maxAgeSeconds" not in self or self["policy"] == "LastGood"
    ),
    _at_least(0): _is_at_least(0),
    _at_least(1): _is_at_least(1),
    "!has(self.minAllowed) || !has(self.maxAllowed) || self.minAllowed.all(name, "
    f"!(name in self.maxAllowed) || string(self.minAllowed[name]).{ENDLESS} || "
    f"string(self.maxAllowed[name]).{ENDLESS} || !quantity(string(self.minAllowed[name]))"
    ".isGreaterThan(quantity(string(self.maxAllowed[name]))))": _are_bounds_in_order,
    "!(has(self.mode) && self.mode == 'Off' && has(self.controlledValues) && "
    "self.controlledValues == 'RequestsAndLimits')": lambda self: (
        (self.get("mode"), self.get("controlledValues")) != ("Off", "RequestsAndLimits")
    ),
}
_IF_AND_ONLY_IF = re.compile(r"\(self\.(\w+) == '(\w+)'\) == has\(self\.(\w+)\)")
_MATCHES = re.compile(r"self\.matches\('(.*)'\)")
REASONS: dict[str, Callable[[FieldPath, str], FieldError]] = {
    "FieldValueForbidden": field_errors.forbidden,
    "FieldValueRequired": field_errors.required,
}


def judge_of(rule: str) -> Judge | None:
    """Return whether a value keeps a rule, as a function, or None for a rule that is not ours."""
    if form := _IF_AND_ONLY_IF.fullmatch(rule):
        name, value, field = form.groups()
        return lambda self: (self.get(name) == value) == (field in self)
    if form := _MATCHES.fullmatch(rule):
        pattern = re.compile(form[1].replace("$", r"\Z"))
        return lambda self: pattern.search(self) is not None
    return JUDGES.get(rule)


class _WholeError(FieldError):
    """A violated rule of an object or list, whose value the message does not repeat."""

    @property
    def body(self) -> str:
        return f"Invalid value: {self.detail}"


def has_rules(schema: JsonObject) -> bool:
    properties = (schema.get("properties") or {}).values()
    inner = [*properties, schema.get("items"), schema.get("additionalProperties")]
    return RULES in schema or any(has_rules(child) for child in inner if isinstance(child, dict))


def violations(value: Any, schema: JsonObject, old: Any = MISSING, path: str = "") -> Iterator[FieldError]:
    """Yield the rules that a valid `value` violates. `old` is the stored value of the same field."""
    if value is None or (old is not MISSING and old == value):
        return
    for rule in schema.get(RULES) or ():
        judge = judge_of(rule["rule"])
        if judge is not None and not judge(value):
            yield _violation(value, path, rule)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, child in value.items():
            inner = properties.get(name, others)
            if isinstance(inner, dict):
                at = f"{path}.{name}" if path else name
                yield from violations(child, inner, before.get(name, MISSING), at)
    elif isinstance(value, list):
        partner = _partners(schema, old)
        for index, child in enumerate(value):
            yield from violations(child, schema.get("items") or {}, partner(child), f"{path}[{index}]")


def _partners(schema: JsonObject, old: Any) -> Callable[[Any], Any]:
    """Return the function that finds the stored item of an item. Only keyed lists have them."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return lambda _item: MISSING
    known = {tuple(str(item.get(key)) for key in keys): item for item in old if isinstance(item, dict)}
    return lambda item: known.get(tuple(str(item.get(key)) for key in keys), MISSING)


def _violation(value: Any, path: str, rule: JsonObject) -> FieldError:
    at = rule.get("fieldPath", "")
    where, message = f"{path}{at}" if path else at.removeprefix("."), rule["message"]
    if make := REASONS.get(rule.get("reason", "")):
        return make(FieldPath(where), message)
    if isinstance(value, dict | list):
        return _WholeError(ErrorType.INVALID, where, "", message)
    return field_errors.invalid(FieldPath(where), value, message)
