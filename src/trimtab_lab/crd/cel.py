"""Validation rules of custom resources in CEL (`x-kubernetes-validations`), evaluated by cel-python.

A rule that mentions `oldSelf` runs only on updates. Other rules are skipped for values that did not change, so that an old
object that violates a new rule can still be edited elsewhere (ratcheting).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import celpy
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from trimtab.model.field_errors import ErrorType, FieldError
from trimtab.model.times import parse_time
from trimtab_lab.apiserver.errors import duplicate_value, forbidden_field, invalid_value, required
from trimtab_lab.crd.cel_functions import FUNCTIONS
from trimtab_lab.storage.codec import JsonObject

RULES = "x-kubernetes-validations"
MISSING = object()
#: Reserved words of CEL; a field of that name is written `__name__` in rules.
RESERVED = frozenset(
    {"true", "false", "null", "in"}
    | {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"}
    | {"package", "namespace", "return", "var", "void", "while"}
)
EVALUATION_ERRORS = (CELEvalError, TypeError, ValueError, KeyError)
ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


class _WholeError(FieldError):
    """A violated rule of an object or list, whose value the message does not repeat."""

    @property
    def body(self) -> str:
        """Return the message without the value."""
        return f"Invalid value: {self.detail}"


@dataclass(frozen=True)
class CelRule:
    """A compiled rule."""

    text: str
    program: Any
    uses_old: bool
    problem: str = ""


@lru_cache(maxsize=2048)
def compile_rule(text: str) -> CelRule:
    """Compile a rule. The result is cached, also if it does not compile."""
    uses_old = "oldSelf" in text
    try:
        environment = celpy.Environment()
        program = environment.program(environment.compile(text), functions=FUNCTIONS)
    except CELParseError as problem:
        return CelRule(text, None, uses_old, str(problem).splitlines()[0])
    return CelRule(text, program, uses_old)


def has_rules(schema: JsonObject) -> bool:
    """Return whether a schema or a part of it has rules."""
    properties = (schema.get("properties") or {}).values()
    inner = [*properties, schema.get("items"), schema.get("additionalProperties")]
    return RULES in schema or any(has_rules(child) for child in inner if isinstance(child, dict))


def validate_rules(value: Any, schema: JsonObject, old: Any = MISSING, path: str = "") -> list[FieldError]:
    """Return the rules that `value` violates. `old` is the stored value of the same field."""
    return list(_walk(value, schema, old, path))


def _walk(value: Any, schema: JsonObject, old: Any, path: str) -> Iterator[FieldError]:
    if value is None:
        return
    for rule in schema.get(RULES) or ():
        yield from _check(value, schema, old, path, rule)
    if old is not MISSING and old == value:
        # Below an unchanged value only transition rules could apply, and those compare equals.
        return
    if isinstance(value, dict):
        yield from _walk_fields(value, schema, old if isinstance(old, dict) else {}, path)
    elif isinstance(value, list):
        partner = _partners(schema, old)
        for index, child in enumerate(value):
            yield from _walk(child, schema.get("items") or {}, partner(child), f"{path}[{index}]")


def _walk_fields(value: JsonObject, schema: JsonObject, old: JsonObject, path: str) -> Iterator[FieldError]:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, child in value.items():
        inner = properties.get(name, additional)
        if isinstance(inner, dict):
            yield from _walk(child, inner, old.get(name, MISSING), f"{path}.{name}" if path else name)


def _partners(schema: JsonObject, old: Any) -> Any:
    """Return the function that finds the stored item of an item. Only keyed lists have them."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return lambda _item: MISSING
    known = {tuple(str(item.get(key)) for key in keys): item for item in old if isinstance(item, dict)}
    return lambda item: known.get(tuple(str(item.get(key)) for key in keys), MISSING)


def _check(value: Any, schema: JsonObject, old: Any, path: str, rule: JsonObject) -> Iterator[FieldError]:
    compiled = compile_rule(rule.get("rule", ""))
    is_skipped = old is MISSING and not rule.get("optionalOldSelf") if compiled.uses_old else old == value
    if is_skipped:
        return
    if compiled.program is None:
        yield _WholeError(ErrorType.INVALID, path, "", f"rule compile error: {compiled.problem}")
        return
    scope = {"self": to_cel(value, schema)}
    if compiled.uses_old and old is not MISSING:
        scope["oldSelf"] = to_cel(old, schema)
    try:
        is_kept = bool(compiled.program.evaluate(scope))
    except EVALUATION_ERRORS as problem:
        cause = problem.args[0] if problem.args else type(problem).__name__
        detail = f"{cause} evaluating rule: {rule.get('message') or rule.get('rule')}"
        yield _WholeError(ErrorType.INVALID, path, "", detail)
        return
    if not is_kept:
        yield _violation(value, schema, path, rule, _message(rule, scope))


def _message(rule: JsonObject, scope: JsonObject) -> str:
    expression = rule.get("messageExpression")
    if expression:
        compiled = compile_rule(expression)
        if compiled.program is not None:
            try:
                text = str(compiled.program.evaluate(scope)).strip()
            except EVALUATION_ERRORS:
                text = ""  # upstream falls back to the plain message too
            if text and "\n" not in text:
                return text
    return str(rule.get("message") or f"failed rule: {rule.get('rule', '').strip()}")


def _violation(value: Any, schema: JsonObject, path: str, rule: JsonObject, message: str) -> FieldError:
    where = f"{path}{rule.get('fieldPath', '')}" if path else rule.get("fieldPath", "").removeprefix(".")
    reason = rule.get("reason", "FieldValueInvalid")
    if reason == "FieldValueForbidden":
        return forbidden_field(where, message)
    if reason == "FieldValueRequired":
        return required(where, message)
    if reason == "FieldValueDuplicate":
        return duplicate_value(where, value)
    if schema.get("type") in ("object", "array"):
        return _WholeError(ErrorType.INVALID, where, "", message)
    return invalid_value(where, value, message)


def to_cel(value: Any, schema: JsonObject) -> Any:
    """Turn JSON into CEL values of the types that the schema declares."""
    if value is None:
        return None
    if isinstance(value, bool):
        return celtypes.BoolType(value)
    if isinstance(value, dict):
        return _map_to_cel(value, schema)
    if isinstance(value, list):
        return celtypes.ListType([to_cel(child, schema.get("items") or {}) for child in value])
    if isinstance(value, str):
        return _text_to_cel(value, schema)
    if schema.get("type") == "number" or isinstance(value, float):
        return celtypes.DoubleType(value)
    return celtypes.IntType(value)


def _map_to_cel(value: JsonObject, schema: JsonObject) -> Any:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    inner = additional if isinstance(additional, dict) else {}
    found = celtypes.MapType()
    for name, child in value.items():
        key = celtypes.StringType(_escape(name) if name in properties else name)
        found[key] = to_cel(child, properties.get(name, inner))
    return found


def _text_to_cel(value: str, schema: JsonObject) -> Any:
    if schema.get("format") == "date-time":
        return celtypes.TimestampType(parse_time(value))
    if schema.get("format") == "duration":
        return celtypes.DurationType(value)
    return celtypes.StringType(value)


def _escape(name: str) -> str:
    if name in RESERVED:
        return f"__{name}__"
    for plain, escaped in ESCAPES:
        name = name.replace(plain, escaped)
    return name
