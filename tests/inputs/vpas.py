"""VPAs and VPAScopes that must be refused: by their definitions, by our webhooks, and offline."""

from collections.abc import Iterator
from typing import Any

from tests.inputs.input import AT_PATH, SCOPES, SERVERS, VPAS, Input, Refusal, created, value_at
from tests.inputs.input import GONE as NOTHING
from tests.unit.model.crds.objects import BAD as BY_DEFINITION
from tests.unit.model.crds.objects import GONE, POLICY, SCOPE, changed
from tests.unit.model.crds.objects import VPA as WHOLE

VPA = changed(WHOLE, f"{POLICY}.startupBoost", GONE)
"""A VPA without what needs a feature gate that is off by default."""
PATHS = {"VerticalPodAutoscaler": VPAS, "VPAScope": SCOPES}
NAMES = {"VerticalPodAutoscaler": "VPA", "VPAScope": "VPAScope"}


def _bad(good: Any, path: str, value: Any, field: str, shown: Any = AT_PATH) -> Input:
    body = changed(good, path, value)
    text = "absent" if value is GONE else repr(value)
    name = f"{NAMES[good['kind']]}: {path} is {text if len(text) < 50 else f'{len(text):,} characters'}"
    refusal = Refusal(field, value_at(body, path) if shown is AT_PATH else shown)
    return Input(name, created(PATHS[good["kind"]], body), refusal)


def _amounts() -> Iterator[Input]:
    for amount in ("-1", "1e1000000000", "1e-1000000000", " 1", "NaN", "9" * 70, [1], {"a": 1}, True):
        yield _bad(VPA, f"{POLICY}.maxAllowed.cpu", amount, f"{POLICY}.maxAllowed")
    yield _bad(VPA, f"{POLICY}.minAllowed.cpu", "-1", f"{POLICY}.minAllowed")


def _wrong_types() -> Iterator[Input]:
    for path, value in (
        ("spec.targetRef", "Deployment/web"),
        ("spec.updatePolicy", "Auto"),
        ("spec.updatePolicy.minReplicas", "2"),
        ("spec.updatePolicy.minReplicas", -(2**63)),
        ("spec.resourcePolicy.containerPolicies", {"containerName": "app"}),
        ("spec.vpaScope", "leader"),
        (f"{POLICY}.containerName", 7),
        (f"{POLICY}.controlledResources", "cpu"),
    ):
        yield _bad(VPA, path, value, path)


def _contradictions() -> Iterator[Input]:
    yield _bad(VPA, f"{POLICY}.mode", "Sometimes", f"{POLICY}.mode")
    yield _bad(VPA, "spec.targetRef.kind", "", "spec.targetRef.kind")
    yield _bad(VPA, "spec.targetRef.name", "x" * 65_536, "spec.targetRef.name")


def _scopes() -> Iterator[Input]:
    selector = "spec.podSelector"
    yield _bad(SCOPE, selector, "role=leader", selector)
    yield _bad(SCOPE, "spec", [], "spec")
    many = {f"key{index}": "x" for index in range(10_000)}
    yield _bad(SCOPE, f"{selector}.matchLabels", many, selector)
    yield _bad(SCOPE, f"{selector}.matchLabels", {"role": 7}, selector, 7)
    yield _bad(SCOPE, f"{selector}.matchLabels", {"x" * 1000: "a"}, selector, NOTHING)
    keyless = {"matchExpressions": [{"operator": "Exists"}]}
    yield _bad(SCOPE, "spec.nodeSelector", keyless, "spec.nodeSelector", "")


def _by_webhook() -> Iterator[Input]:
    """What only a webhook can know: what the cluster holds beside the object."""
    body = changed(VPA, "spec.vpaScope.name", "absent")
    wanted = Refusal("spec.vpaScope.name", "absent", "(?i)not found|no VPAScope")
    yield Input("VPA: a scope that is not there", created(VPAS, body), wanted, SERVERS)


def _by_definition() -> Iterator[Input]:
    """Yield the rows that the definitions are tested with; where two fields do not go together, no value is shown."""
    pairs: tuple[Any, ...] = ("5Gi", [], "Exists", {"a b": "x"})
    for good, path, value, field in BY_DEFINITION:
        if good["kind"] in PATHS and "startupBoost" not in path:
            shown = NOTHING if value in pairs else "x y" if value == {"a": "x y"} else AT_PATH
            yield _bad(VPA if good is WHOLE else good, path, value, field, shown)


BAD = (
    *_by_definition(),
    *_amounts(), *_wrong_types(), *_contradictions(), *_scopes(), *_by_webhook(),
)  # fmt: skip
